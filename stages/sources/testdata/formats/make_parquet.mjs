// Makes the Parquet files that the tests read, with three writers. Made with Node.js 20 and the npm packages @duckdb/node-api 1.5.6-r.1,
// parquet-wasm 0.8.0 (the Rust implementation of Arrow) and hyparquet-writer 0.17.0: node make_parquet.mjs, in a folder where they are installed.
import { DuckDBInstance } from "@duckdb/node-api";
import { parquetWriteFile } from "hyparquet-writer";
import * as arrow from "parquet-wasm";
import { readFileSync, writeFileSync } from "node:fs";

const folder = process.argv[2] ?? ".";
const db = await (await DuckDBInstance.create()).connect();
const info = JSON.stringify({ info: { features: { label: { names: ["ant", "cat", "dog", "eel"], _type: "ClassLabel" }, image: { _type: "Image" } } } });
const rows = (n) => `
  SELECT {'bytes': encode('image ' || i), 'path': i || '.jpg'} AS image, encode('raw ' || i) AS raw, 'né ' || i AS text, (i % 3)::BIGINT AS label,
    ['dog', 'ant', 'cat'][i % 3 + 1] AS name, i / 2 AS score, [i, 0.5, -1e30]::FLOAT[] AS embedding, [i, i + 1]::INTEGER[2] AS pair,
    range(0, i % 3)::INTEGER[] AS tokens, i % 2 = 1 AS flag, 1099511627776 AS wide, CASE WHEN i != 3 THEN i::INTEGER END AS gap,
    CASE i % 3 WHEN 0 THEN [1, 2] WHEN 1 THEN [1, NULL] END AS holes, ['a', 'b'] AS names, {'x': i, 'y': i} AS point, '2020-01-01'::TIMESTAMP AS time, i::DECIMAL(20, 2) AS price
  FROM range(${n}) t(i)`;
for (const [name, n, options] of [
  ["duckdb_snappy", 10, `COMPRESSION snappy, KV_METADATA {huggingface: '${info}'}`],
  ["duckdb_zstd", 10, "COMPRESSION zstd, PARQUET_VERSION V2"],
  ["duckdb_gzip", 10, "COMPRESSION gzip"],
  ["duckdb_groups", 5000, "COMPRESSION zstd, ROW_GROUP_SIZE 2048"],
]) {
  await db.run(`COPY (${rows(n)}) TO '${folder}/${name}.parquet' (FORMAT parquet, ${options})`);
}

// Arrow's writer is given what DuckDB wrote.
const table = () => arrow.readParquet(readFileSync(`${folder}/duckdb_snappy.parquet`));
for (const [name, properties] of [
  ["arrow_pages", (b) => b.setCompression(arrow.Compression.SNAPPY).setMaxRowGroupSize(4).setDataPageSizeLimit(8).setWriteBatchSize(2)],
  ["arrow_fallback", (b) => b.setCompression(arrow.Compression.BROTLI).setDictionaryPageSizeLimit(16).setDataPageSizeLimit(8).setWriteBatchSize(2)],
  ["arrow_plain", (b) => b.setCompression(arrow.Compression.UNCOMPRESSED).setDictionaryEnabled(false)],
  ["arrow_lz4", (b) => b.setCompression(arrow.Compression.LZ4_RAW)],
  ["arrow_lz4_v2", (b) => b.setCompression(arrow.Compression.LZ4_RAW).setWriterVersion(arrow.WriterVersion.V2).setMaxRowGroupSize(4)],
  ["arrow_v2", (b) => b.setCompression(arrow.Compression.ZSTD).setWriterVersion(arrow.WriterVersion.V2).setDictionaryEnabled(false)],
]) {
  writeFileSync(`${folder}/${name}.parquet`, arrow.writeParquet(table(), properties(new arrow.WriterPropertiesBuilder()).build()));
}

// Numbers that are too large, and types that aren't read as they are; what Hadoop packs by its own LZ4.
await db.run(`
  COPY (SELECT 3000000000::UINTEGER AS u32, 18446744073709551615::UBIGINT AS u64, MAP {'a': 1} AS pairs, {'of': {'x': i::INTEGER, 'y': 1}} AS "with.dots"
    FROM range(2) t(i)) TO '${folder}/duckdb_types.parquet' (FORMAT parquet, COMPRESSION lz4_raw)`);
const small = arrow.readParquet(readFileSync(`${folder}/duckdb_types.parquet`));
writeFileSync(`${folder}/arrow_hadoop.parquet`, arrow.writeParquet(small, new arrow.WriterPropertiesBuilder().setCompression(arrow.Compression.LZ4).build()));

const count = [...Array(10).keys()];
parquetWriteFile({
  filename: `${folder}/hyparquet.parquet`,
  rowGroupSize: 3,
  columnData: [
    { name: "raw", data: count.map((i) => new TextEncoder().encode("raw " + i)), type: "BYTE_ARRAY" },
    { name: "text", data: count.map((i) => "né " + i), type: "STRING" },
    { name: "label", data: count.map((i) => i % 3), type: "INT32" },
    { name: "score", data: count.map((i) => i / 2), type: "DOUBLE" },
    { name: "flag", data: count.map((i) => i % 2 == 1), type: "BOOLEAN" },
  ],
});
