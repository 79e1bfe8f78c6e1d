"""Temporary."""
import numpy as np, pandas as pd
from itertools import combinations
from scipy.stats import t as student
from statsmodels.stats.multitest import multipletests
def holm(p):
    p=np.asarray(p,float); out=np.full(p.shape,np.nan); k=~np.isnan(p)
    if k.any(): out[k]=multipletests(p[k],method="holm")[1]
    return out
RUN=["study","run","curve","model","size","sample_words","seed","sample","nested","unit","baseline"]
def unit_accuracies(a):
    keys=["benchmark","method"]; parts=[]
    for level,by in (("overall",[]),("phenomenon",["phenomenon"]),("paradigm",["paradigm"])):
        g=a.groupby([*RUN,*keys,*by],sort=False,dropna=False)
        r=g.agg(paradigms=("accuracy","size"),pairs=("pairs","sum"),accuracy=("accuracy","mean")).reset_index()
        r["level"]=level; r["name"]=r[by[0]] if by else "overall"
        parts.append(r.drop(columns=by))
    return pd.concat(parts,ignore_index=True)
def _fit(x,y):
    X=np.stack([np.ones(len(x)),x],1); XtX=np.linalg.pinv(X.T@X); b=XtX@X.T@y; e=y-X@b
    h=np.einsum("ij,jk,ik->i",X,XtX,X); ok=len(x)>3 and (h<1-1e-9).all()
    V=XtX@(X.T*(e/(1-np.minimum(h,1-1e-12)))**2)@X@XtX
    return b,V,ok
def fit_slopes(units,by,confidence=.95):
    rows=[]
    for k,g in units.groupby(by,sort=False):
        x=np.log2(g.sample_words.astype(float)).to_numpy(); y=g.accuracy.astype(float).to_numpy()
        if len(set(x))<2: continue
        b,V,ok=_fit(x,y); se=np.sqrt(V[1,1]); t=student.ppf(.5+confidence/2,max(len(x)-2,1))
        r=dict(zip(by,k if isinstance(k,tuple) else (k,))); r|=dict(slope=b[1],intercept=b[0],se=se,df=len(x)-2,low=b[1]-t*se if ok else np.nan,high=b[1]+t*se if ok else np.nan,runs=len(x),p=2*student.sf(abs(b[1]/se),len(x)-2))
        rows.append(r)
    return pd.DataFrame(rows)
def fit_curves(a,confidence=.95,pairs=None):
    u=unit_accuracies(a); by=["benchmark","method","curve","unit","level","name"]
    s=fit_slopes(u,by,confidence); 
    g=u.groupby(by,sort=False); first=g.sample_words.min(); 
    ext=[]
    for k,x in g:
        w=x.sample_words; ext.append(dict(zip(by,k))|dict(paradigms=x.paradigms.iloc[0],pairs=x.pairs.iloc[0],sizes=w.nunique(),smallest_words=w.min(),largest_words=w.max(),smallest_accuracy=x.accuracy[w==w.min()].mean(),largest_accuracy=x.accuracy[w==w.max()].mean(),lack_of_fit=pd.NA,note=""))
    return pd.DataFrame(ext).merge(s,on=by,how="left")
def compare(a,margin=None,confidence=.95):
    s=fit_curves(a,confidence); rows=[]
    for (b,m,l,n),g in s.groupby(["benchmark","method","level","name"],sort=False):
        for i,j in combinations(range(len(g)),2):
            p,q=g.iloc[i],g.iloc[j]; d=p.slope-q.slope; se=np.hypot(p.se,q.se); df=p.df+q.df; t=student.ppf(.975,df); pv=2*student.sf(abs(d/se),df)
            rows.append(dict(benchmark=b,method=m,curve=p.curve,other=q.curve,level=l,name=n,difference=d,se=se,df=df,low=d-t*se,high=d+t*se,p=pv,p_holm=pv,paired=False,runs=p.runs+q.runs,sizes=p.sizes,equivalent=pd.NA,note=""))
    return pd.DataFrame(rows,columns=["benchmark","method","curve","other","level","name","difference","se","df","low","high","p","p_holm","paired","runs","sizes","equivalent","note"])
def fitted_lines(a,confidence=.95):
    u=unit_accuracies(a); u=u[u.level!="paradigm"]; rows=[]
    for k,g in u.groupby(["benchmark","method","curve","level","name"],sort=False):
        x=np.log2(g.sample_words.astype(float)).to_numpy(); y=g.accuracy.astype(float).to_numpy()
        if len(set(x))<2: continue
        b,V,ok=_fit(x,y); t=student.ppf(.5+confidence/2,max(len(x)-2,1))
        for v in np.linspace(x.min(),x.max(),17):
            m=b[0]+b[1]*v; e=t*np.sqrt(max(0,np.array([1,v])@V@np.array([1,v]))) if ok else np.nan
            rows.append((*k,2**v,m,m-e,m+e))
    return pd.DataFrame(rows,columns=["benchmark","method","curve","level","name","sample_words","accuracy","low","high"])
