"""Make figures. charts.py draws them, style.py defines their look, and files.py writes them in the requested size."""
