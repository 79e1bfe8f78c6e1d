"""Files of torch.save: read as data without executing code, damage reported in one line."""

import io
import os
import pickle
import pickletools
import random
import struct
import subprocess
import tarfile
import zipfile
from collections import OrderedDict

import pytest
import torch
from torch.nn.backends.thnn import _get_thnn_function_backend

from pairscale.errors import InputError, PairscaleError
from tests.support.published_models import Corpus, RNNModel, importable, randomised, save
from train.import_checkpoint.pickles import Record, read_checkpoint, read_torch_file


class Part:
    """A part of a file's only array, as a persistent reference."""

    def __init__(self, start, count, total):
        self.pid = ("storage", torch.cuda.FloatStorage, "0", "cuda:0", total, (f"view{start}", start, count))


class Backend:
    """The `_backend` of every module of torch 0.3."""

    def __reduce__(self):
        return _get_thnn_function_backend, ()


class OldPickler(pickle.Pickler):
    """Pickles tensors and parameters as torch 0.2 and 0.3 did from a GPU, with arrays as parts of a larger one."""

    def __init__(self, file, model):
        super().__init__(file, protocol=2)
        self.starts, self.known, self.array = {}, set(), torch.arange(3.0)
        for weight in model.parameters():
            self.starts[weight.data_ptr()] = len(self.array)
            self.array = torch.cat([self.array, weight.detach().flatten()])

    def persistent_id(self, value):
        if isinstance(value, Part):
            return value.pid
        if isinstance(value, type) and issubclass(value, torch.nn.Module) and value not in self.known:
            self.known.add(value)
            return "module", value, "model.py", "class RNNModel(nn.Module): ..."
        return None

    def reducer_override(self, value):
        if isinstance(value, torch.nn.Parameter):
            return torch.nn.Parameter, (value.data,), (True, False, OrderedDict())
        if isinstance(value, torch.Tensor):
            part = Part(self.starts[value.data_ptr()], value.numel(), len(self.array))
            return torch._utils._rebuild_tensor, (part, 0, tuple(value.shape), value.stride())
        return NotImplemented


def sequence(*payloads, magic=0x1950A86A20F9469CFC6C):
    """Return a file of the older format up to its arrays."""
    head = [magic, 1001, {"protocol_version": 1001, "little_endian": True}]
    return b"".join([*(pickle.dumps(value, 2) for value in head), *payloads])


def archive(path, payload, compression=zipfile.ZIP_STORED, **members):
    """Write a file of the newer format."""
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in {"data.pkl": payload, "version": b"3\n", **members}.items():
            file.writestr(f"archive/{name}", data)


def test_a_checkpoint_of_torch_0_3_is_read(tmp_path):
    model = randomised(RNNModel(14, 5, 6, 2))
    model.__dict__["_backend"] = Backend()
    buffer = io.BytesIO()
    with importable():
        pickler = OldPickler(buffer, model)
        pickler.dump(model)
    data = sequence(buffer.getvalue(), pickle.dumps(["0"], 2))
    array = pickler.array
    (tmp_path / "model.pt").write_bytes(data + struct.pack("<q", len(array)) + array.numpy().tobytes())
    checkpoint = read_checkpoint(tmp_path / "model.pt")
    assert checkpoint.attribute("", "rnn_type") == "LSTM"
    assert checkpoint.attribute("drop", "p") == 0.3
    assert checkpoint.tensors.keys() == model.state_dict().keys()
    for name, weight in model.state_dict().items():
        assert torch.equal(checkpoint.tensors[name], weight), name


class Evil:
    """Calls a function when it is unpickled."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def payloads(touched):
    """Return pickles that would create a file if any of their code were executed."""
    command = f"touch {touched}"
    code = f"open({str(touched)!r}, 'w')"
    objects = [
        Evil(os.system, command),
        Evil(eval, code),
        Evil(exec, code),
        Evil(open, str(touched), "w"),
        Evil(subprocess.Popen, ["touch", str(touched)]),
        Evil(torch.load, str(touched)),
        Evil(pickle.loads, pickle.dumps(Evil(os.system, command))),
        Evil(torch.hub.load, "a/b", "c"),
        Evil(map, os.system, [command]),
    ]
    hands = [
        f"cposix\nsystem\n(S'{command}'\ntR.".encode(),
        f"(S'{command}'\niposix\nsystem\n.".encode(),
        b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c" + bytes([len(command)]) + command.encode() + b"\x85R.",
        f"c__builtin__\neval\n(S{code!r}\ntR.".encode(),
        b"\x80\x04\x8c\x18torch.nn.modules.dropout\x8c\x1cDropout.__init__.__globals__\x93.",
    ]
    return [pickle.dumps({"w": thing}, 2) for thing in objects] + hands


@pytest.mark.parametrize("form", ["sequence", "archive", "bare", "magic"])
def test_no_code_of_a_pickle_is_executed(tmp_path, form):
    path = tmp_path / "model.pt"
    for payload in payloads(tmp_path / "touched"):
        if form == "archive":
            archive(path, payload)
        elif form == "sequence":
            path.write_bytes(sequence(payload, pickle.dumps([], 2)))
        else:
            path.write_bytes(payload + (sequence(pickle.dumps({}, 2)) if form == "magic" else b""))
        with pytest.raises(InputError) as raised:
            read_checkpoint(path)
        assert "\n" not in str(raised.value)
        assert ("not loaded, because its pickle names " in str(raised.value)) == (b"torch" not in payload)
        assert not (tmp_path / "touched").exists()


def test_a_pickle_within_a_valid_model_or_vocabulary_is_not_executed(tmp_path):
    evil = Evil(os.system, f"touch {tmp_path}/touched")
    model = RNNModel(14, 5, 6, 1)
    model.drop.extra = evil
    for value in (model, Corpus(evil), {**RNNModel(14, 5, 6, 1).state_dict(), "more": evil}):
        for old in (False, True):
            save(value, tmp_path / "model.pt", old)
            with pytest.raises(InputError, match=r"model\.pt: .* not loaded, .* names posix\.system"):
                read_torch_file(tmp_path / "model.pt")
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("name", ["collections OrderedDict", "model RNNModel"])
def test_a_pickle_cannot_change_a_class(tmp_path, name):
    """BUILD may set attributes of classes, but of none that anything else uses."""
    archive(tmp_path / "model.pt", b"c" + name.replace(" ", "\n").encode() + b"\n(N}S'left_behind'\nNstb.")
    with pytest.raises(InputError, match="damaged"):
        read_torch_file(tmp_path / "model.pt")
    assert not any(hasattr(kind, "left_behind") for kind in (OrderedDict, Record))


BOMBS = {
    "a place of the memo without end": b"\x80\x02Nr\xff\xff\xff\xff.",
    "text longer than the file": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "bytes longer than any memory": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
    "the registry of extensions": b"\x80\x02\x82\x01.",
    "an empty stack": b"\x80\x020.",
    "no end": b"\x80\x02N",
    "a call of no function": b"\x80\x02NN\x85R.",
    "nested too deep": b"(" * 10_000 + b"t" * 10_000 + b".",
}


@pytest.mark.parametrize("name", BOMBS)
def test_an_endless_pickle_is_a_message_of_one_line(tmp_path, name):
    path = tmp_path / "model.pt"
    path.write_bytes(sequence(BOMBS[name], pickle.dumps([], 2)))
    with pytest.raises(PairscaleError, match=r"model\.pt: .*(damaged|must contain a model)") as raised:
        read_checkpoint(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("old", [False, True])
def test_a_truncated_or_changed_file_is_a_message_of_one_line(tmp_path, old):
    save(randomised(RNNModel(14, 5, 6, 1)), tmp_path / "model.pt", old)
    whole = (tmp_path / "model.pt").read_bytes()
    for share in range(0, 10, 2):
        (tmp_path / "model.pt").write_bytes(whole[: len(whole) * share // 10])
        with pytest.raises(InputError, match=r"model\.pt: ") as raised:
            read_checkpoint(tmp_path / "model.pt")
        assert "\n" not in str(raised.value)
    generator = random.Random(1)
    refused = 0
    for _ in range(60):
        changed = bytearray(whole)
        for _ in range(3):
            changed[generator.randrange(len(whole))] = generator.randrange(256)
        (tmp_path / "model.pt").write_bytes(changed)
        try:
            read_checkpoint(tmp_path / "model.pt")
        except InputError as error:
            refused += "\n" not in str(error)
    assert refused > 5


def tensor_of(size, stride, offset=0, total=6):
    return Evil(torch._utils._rebuild_tensor_v2, Part(0, total, total), offset, size, stride, False, OrderedDict())


class PartPickler(pickle.Pickler):
    def persistent_id(self, value):
        return value.pid[:5] if isinstance(value, Part) else None


GOOD = [tensor_of((2, 3), (3, 1)), tensor_of((3, 2), (1, 3))]
BAD = [
    tensor_of((2, 3), (3, 1), offset=1),
    tensor_of((2, 3), (4, 1)),
    tensor_of((1 << 40, 3), (0, 0)),
    tensor_of((6,), (-1,), offset=5),
    tensor_of((2,), (1 << 62,)),
    tensor_of((1 << 70,), (1,)),
    tensor_of(("a",), (1,)),
    tensor_of((6,), (1,), total=1 << 50),
    tensor_of((7,), (1,)),
]


def test_a_tensor_stays_within_its_array(tmp_path):
    for tensor in [*GOOD, *BAD]:
        buffer = io.BytesIO()
        PartPickler(buffer, protocol=2).dump({"w": tensor})
        archive(tmp_path / "model.pt", buffer.getvalue(), **{"data/0": torch.arange(6.0).numpy().tobytes()})
        if tensor in BAD:
            with pytest.raises(InputError, match=r"model\.pt: "):
                read_checkpoint(tmp_path / "model.pt")
        else:
            expected = torch.as_strided(torch.arange(6.0), *tensor.call[1][2:4])
            assert torch.equal(read_checkpoint(tmp_path / "model.pt").tensors["w"], expected)


def test_files_of_other_kinds_are_refused_in_one_line(tmp_path):
    path = tmp_path / "model.pt"
    good = pickle.dumps({}, 2)
    archive(path, good + b" " * 1000, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match="compressed"):
        read_torch_file(path)
    archive(path, good, **{"constants.pkl": good})
    with pytest.raises(InputError, match="a TorchScript program"):
        read_torch_file(path)
    with tarfile.open(path, "w") as file:
        file.add(__file__, "storages")
    with pytest.raises(InputError, match="a tar archive"):
        read_torch_file(path)
    for text in (b"", b"Some text\n", b"\x80", b"PK\x03\x04 and more"):
        path.write_bytes(text)
        with pytest.raises(InputError, match=r"model\.pt: .*damaged, or not a checkpoint that can be imported"):
            read_torch_file(path)
    with pytest.raises(InputError, match="does not exist"):
        read_torch_file(tmp_path / "none.pt")


def test_an_array_whose_numbers_are_not_in_the_file_is_refused(tmp_path):
    """torch leaves it as the memory happens to be."""
    file = io.BytesIO()
    torch.save({"one": torch.ones(3), "two": torch.ones(2)}, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    for _ in range(4):  # magic number, version, machine, tensors
        for _ in pickletools.genops(file):
            pass
    before, keys, after = file.tell(), pickle.load(file), file.read()
    place = tmp_path / "cut.pt"
    place.write_bytes(file.getvalue()[:before] + pickle.dumps(keys[:1], 2) + after[: 8 + 3 * 4])
    with pytest.raises(InputError, match=r"cut\.pt: .*damaged, .* numbers of 1 arrays"):
        read_checkpoint(place)
