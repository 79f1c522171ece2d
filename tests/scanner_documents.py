"""Documents for the scanner: results, ground truth, runs and judgements that it understands, others, and hard numbers."""

from __future__ import annotations

RESULT = (
    b'{"image_id": 42, "category_id": 18, "bbox": [258.1499938964844, 41.290000915527344, 0, -2.5e1],'
    b' "score": 0.23600000143051147}'
)


def document(*records: bytes) -> bytes:
    return b"[" + b", ".join(records) + b"]"


ALIKE = [
    b'{"image_id": "a", "category_id": %d, "bbox": [0.5, 1234.5, 3, 1e%d], "score": 1.25, "x": {"y": [null]}}',
    b'{"score":-%d.5,"image_id":-%d,"segmentation":{"size":[1,2],"counts":"a"},"category_id":12345678}',
]
PLAIN = [
    *(document(*[record % (k, 7 * k) for k in range(5)]) for record in ALIKE),
    b"[]",
    b" [ ] \n",
    document(RESULT),
    document(RESULT, RESULT),
    b"\t\r\n " + document(RESULT).replace(b" ", b" \n\t\r ") + b"\n\n",
    document(RESULT).replace(b" ", b""),
    b'[{"score": 1, "bbox": [1, 2, 3, 4], "category_id": -7, "image_id": 0}]',
    b'[{"score":-0,"bbox":[-0,-0.0,0e0,-0E-5],"category_id":-0,"image_id":9223372036854775807}]',
    b'[{"score":1E+2,"bbox":[1e2,1.5e+2,1.5E-2,0.1e-1],"category_id":1,"image_id":-9223372036854775808}]',
    b'[{"image_id":"a","category_id":"b","bbox":[1,2,3,4],"score":1},{"image_id":"","category_id":"b","bbox":[1,2,3,4],"score":1}]',
    b'[{"image_id":"\\u0061","category_id":1,"bbox":[1,2,3,4],"score":1},{"image_id":"a","category_id":1,"bbox":[1,2,3,4],"score":1}]',
    '[{"image_id":"é€😀","category_id":1,"bbox":[1,2,3,4],"score":1}]'.encode(),
    b'[{"image_id":"\\ud83d\\uDE00\\n\\t\\"\\\\\\/\\b\\f\\r","category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"id":[{"a":{"b":[[],{},[{}]]}},null,true,false,"x",-1.5e300,""],"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"":1,"image":2,"image_id2":3,"bbo":[],"scor":{},"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"":2}]',
    b'[{"image_id":1,"category_id":1,"segmentation":{"size":[2,3],"counts":"a}{\\"]"},"score":1}]',
    b'[{"image_id":1,"category_id":1,"keypoints":[1,2,2],"score":1},{"image_id":1,"category_id":1,"segmentation":[[1,2]],"score":1},'
    b'{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"segmentation":null}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"long":"' + b"x" * 1000 + b'"}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"deep":' + b"[" * 64 + b"]" * 64 + b"}]",
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"deep":' + b'{"a":[' * 32 + b"1e5" + b"]}" * 32 + b"}]",
]
NOT_PLAIN = [
    *b'| |x|{}|null|1|"a"|[|]|[,]|[{}]|[[]]|[1]|[null]|\xef\xbb\xbf[]|[]x|[][]|[]\x00|[]\x0c|[]\xc2\xa0'.split(b"|"),
    document(RESULT)[:-1] + b",]",
    document(RESULT)[:-1],
    document(RESULT) + b"]",
    document(RESULT) + b",",
    document(RESULT, b"null"),
    document(RESULT, b"{}"),
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"deep":' + b"[" * 65 + b"]" * 65 + b"}]",
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"deep":' + b"[" * 100_000 + b"}]",
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"deep":' + b'{"a":' * 100_000 + b"}]",
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1},{"image_id":"1","category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"image_id":1,"category_id":1,"score":1},{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"image_id":1,"category_id":1,"score":1}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":' + b"9" * 400 + b"}]",
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1' + b"0" * 309 + b"}]",
    b'[{"image_id":1,"category_id":1,"score":1},{"image_id":1,"category_id":1,"segmentation":[],"score":1}]',
]
ESCAPED = [
    b'[{"image\\u005fid":1,"category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"image_id":1,"image\\u005fid":2,"category_id":1,"bbox":[1,2,3,4],"score":1}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"x":"\\ud800"}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"x":"\\udc00"}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"x":"\\ud800\\ud800"}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"x":"\\ud800\\n"}]',
    b'[{"image_id":1,"category_id":1,"bbox":[1,2,3,4],"score":1,"x":"\\ud800dc00"}]',
    b'[{"image_id":"\\ud800","category_id":1,"bbox":[1,2,3,4],"score":1}]',
]


HOSTILE_BYTES = b'\x00\x1f "\\,:[]{}0-.eE\x7f\x80\xbf\xc2\xf0\xff'

HARD = [
    "0",
    "-0",
    "0.0",
    "-0.0",
    "0e5",
    "0e-5",
    "0e999999999999",
    "-0e-99999999999",
    "1",
    "-1",
    "0.1",
    "0.2",
    "0.3",
    "1e22",
    "1e23",
    "8.5e22",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9007199254740995",
    "9007199254740997",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "9999999999999999999",
    "10000000000000000000",
    "99999999999999999999",
    "123456789012345678901234567890",
    "2.2250738585072011e-308",
    "2.2250738585072012e-308",
    "2.2250738585072014e-308",
    "2.225073858507201e-308",
    "4.9406564584124654e-324",
    "5e-324",
    "3e-324",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
    "2.4703282292062329e-324",
    "1e-324",
    "1e-400",
    "1e-99999",
    "1.7976931348623157e308",
    "1.7976931348623158e308",
    "17976931348623157e292",
    "6.631236846766476e-316",
    "3.2378839133029012895883524125015321748630094900144e-319",
    "7.0420557077594588669468784357561207962098443483187940792729600000e+59",
    "1.00000000000000011102230246251565404236316680908203125",
    "1.00000000000000011102230246251565404236316680908203124",
    "1.00000000000000011102230246251565404236316680908203126",
    "1.00000000000000033306690738754696212708950042724609375",
    "9007199254740993.0",
    "9007199254740992.5",
    "4503599627370496.5",
    "4503599627370497.5",
    "4503599627370498.5",
    "0.500000000000000166533453693773481063544750213623046875",
    "8.98846567431158e307",
    "1.8446744073709551616e19",
    "3.518437208883201171875e13",
    "62.5364939768271845828",
    "8.10109172351e-10",
    "1.50000000000000011102230246251565",
    "104110013277974872254e-225",
    "123456789012345678e-5",
    "5708990770823839207320493820740630171355185152e-2",
    "1448997445238699",
    "8440.9e-1",
    "3.08984926168550152811e-32",
    "0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
    "6.9294956446009195e15",
    "3.7455744005952583e15",
    "2.2250738585072019e-308",
    "1.0e-308",
    "1e308",
    "1.e0x",
    "9.5367431640625e-7",
    "0.00012345678901234567",
    "2.109808898695963e16",
    "4.940656e-318",
    "1.18575755e-316",
    "2.989102097996e-312",
    "9.0608011534336e15",
    "4.708356024711512e18",
    "9.409340012568248e18",
    "1.2345e-310",
    "7.2057594037927933e16",
    "1.0000000000000002e0",
    "1.0000000000000001e0",
    "2e-1074",
    "30000000000000000000e-1",
    "123e34",
    "5e-20",
    "2.5e-1",
    "1e0",
    "0.1e1",
    "10.0",
    "100",
    "1000000",
    "12345678",
    "123456789",
    "1234567890123456",
    "12345678901234567",
    "123456789012345678",
    "1234567890123456789",
    "12345678901234567890",
    "0.1234567",
    "0.12345678",
    "0.123456789",
    "0.1234567890123456",
    "0.12345678901234567",
    "0.0000000000000001234567890123456789",
]
HARD.remove("1.e0x")


ANNOTATION = (
    b'{"id": 7, "image_id": 1, "category_id": 3, "bbox": [1.5, 2, 3, 4], "area": 12.25, "iscrowd": 0, "ignore": 1,'
    b' "segmentation": [[1, 2.5, 3]], "keypoints": [1, 2, 2], "num_keypoints": 1}'
)
TRUTH = (
    b'{"info": {"year": [2014]}, "images": [{"id": 1, "width": 5}, {"file_name": "a", "id": 2}], "annotations": [%b],'
    b' "licenses": [], "categories": [{"supercategory": "x", "id": 3, "name": "cat"}]}'
)


PLAIN_TRUTHS = [
    TRUTH % ANNOTATION,
    TRUTH % b"",
    TRUTH % (ANNOTATION + b"," + ANNOTATION),
    TRUTH % b", ".join([ANNOTATION] * 5),
    TRUTH % b'{"image_id": 1, "category_id": 3}',
    TRUTH
    % b'{"image_id":1,"category_id":3},{"image_id":1,"category_id":3,"iscrowd":true,"ignore":false,"bbox":[1,2,3,4]}',
    TRUTH % b'{"image_id": "1", "category_id": "3", "id": "x", "area": 1e-3}',
    b'{"images":[],"annotations":[],"categories":[]}',
    b' {"im\\u0061ges" : [ ] , "annotations":[],"categories":[],"":{}}\n',
    b'{"categories":[{"name":"a","id":1},{"name":"a","id":2},{"name":"\\u0061","id":3}],"annotations":[],"images":[]}',
    '{"categories":[{"name":"é😀","id":"ü"}],"annotations":[],"images":[{"id":"ß"}],"é":"😀"}'.encode(),
    b'{"a":1,"a":2,"images":[],"annotations":[],"categories":[]}',
]


RUN = b"q1 Q0 doc-1 1 2.5 tag\nq1\tQ0\tdoc-22222222222 2  -1e-3 tag\nq2 Q0 d\xc3\xa9 1 17 t\nq1 Q0 # 3 0.30000001192092896 t"


QRELS = b"q1 0 d1 1\nq1\tQ0  d2\t-2 \r\n\n# c\nq2 0 d1 9223372036854775807"
