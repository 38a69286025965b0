"""Makes the TFRecord files that the tests read. Made with Debian 12's python3-protobuf 3.21.12 and python3-crc32c 2.3:
/usr/bin/python3 make_tfrecord.py

The messages are those of https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/example.proto and feature.proto, the framing
is that of https://www.tensorflow.org/tutorials/load_data/tfrecord."""

import gzip
import os
import struct
import zlib

import crc32c
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

here = os.path.dirname(os.path.abspath(__file__))
F = descriptor_pb2.FieldDescriptorProto


def schema(packed):
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tensorflow", syntax="proto3")

    def message(name, *fields):
        m = file.message_type.add(name=name)
        for number, (field, label, kind, of) in enumerate(fields, 1):
            f = m.field.add(name=field, number=number, label=label, type=kind)
            if of:
                f.type_name = ".tensorflow." + of
            elif label == F.LABEL_REPEATED and kind != F.TYPE_BYTES:
                f.options.packed = packed
        return m

    message("BytesList", ("value", F.LABEL_REPEATED, F.TYPE_BYTES, None))
    message("FloatList", ("value", F.LABEL_REPEATED, F.TYPE_FLOAT, None))
    message("Int64List", ("value", F.LABEL_REPEATED, F.TYPE_INT64, None))
    m = message("Feature", *[(n + "_list", F.LABEL_OPTIONAL, F.TYPE_MESSAGE, t + "List") for n, t in [("bytes", "Bytes"), ("float", "Float"), ("int64", "Int64")]])
    m.oneof_decl.add(name="kind")
    for f in m.field:
        f.oneof_index = 0
    m = message("Features", ("feature", F.LABEL_REPEATED, F.TYPE_MESSAGE, "Features.FeatureEntry"))
    entry = m.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=F.TYPE_STRING)
    entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL, type=F.TYPE_MESSAGE, type_name=".tensorflow.Feature")
    message("Example", ("features", F.LABEL_OPTIONAL, F.TYPE_MESSAGE, "Features"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("tensorflow.Example"))


def mask(crc):
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def write(name, packed):
    Example = schema(packed)
    with open(os.path.join(here, name), "wb") as f:
        for i in range(3):
            e = Example()
            features = e.features.feature
            features["image/encoded"].bytes_list.value.append(b"image %d" % i)
            features["image/class/label"].int64_list.value.append(i * 300)
            features["image/class/text"].bytes_list.value.append("né".encode())
            features["embedding"].float_list.value.extend([i, 0.5, -1e30])
            features["tokens"].int64_list.value.extend([-1, i, 2**31 - 1][: i + 1])
            features["wide"].int64_list.value.append(2**40)
            features["names"].bytes_list.value.extend([b"a", b"b"])
            features["nothing"].SetInParent()
            data = e.SerializeToString()
            length = struct.pack("<Q", len(data))
            f.write(length + struct.pack("<I", mask(crc32c.crc32c(length))) + data + struct.pack("<I", mask(crc32c.crc32c(data))))


write("packed.tfrecord", True)
write("unpacked.tfrecord", False)

# TFRecordOptions compress a file as a whole.
with open(os.path.join(here, "packed.tfrecord"), "rb") as f:
    records = f.read()
with open(os.path.join(here, "gzip.tfrecord"), "wb") as f:
    f.write(gzip.compress(records, mtime=0))
with open(os.path.join(here, "zlib.tfrecord"), "wb") as f:
    f.write(zlib.compress(records))
