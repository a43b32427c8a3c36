"""Reads the tables that `myelin bag export` wrote to the current folder."""

import polars

pose = polars.read_parquet("pose.parquet")
types = {name: str(ty) for name, ty in pose.schema.items()}
assert types == {
    "log_time_ns": "UInt64",
    "publish_time_ns": "UInt64",
    "sequence": "UInt32",
    "id": "UInt8",
    "at[0]": "Float64",
    "at[1]": "Float64",
}, types
assert pose["at[0]"].to_list() == [float(number) for number in range(100)]
assert pose["sequence"].to_list() == list(range(1, 101))
assert pose["log_time_ns"][1] - pose["log_time_ns"][0] == 100_000_000

image = polars.read_parquet("image.parquet")
assert str(image.schema["slice"]) == "Binary", image.schema
assert image["slice"][3] == bytes([30]) * 40_000 and image["header.width"][3] == 100

chatter = polars.read_parquet("chatter.parquet")
assert chatter["data"].to_list() == [f"a;{number}" for number in range(10)]

lists = polars.read_parquet("lists/list.parquet")
assert str(lists.schema["data"]) == "List(Int16)", lists.schema
assert lists["data"].to_list() == [[-10 * at for at in range(number % 4)] for number in range(10)]

json = polars.read_parquet("lists/json.parquet")
expected = [None if number == 3 else number + 0.5 for number in range(10)]
assert json["x"].to_list() == expected, json["x"].to_list()
assert json["name"][3] == "none" and json["in.ok"].to_list() == [n != 3 or None for n in range(10)]
