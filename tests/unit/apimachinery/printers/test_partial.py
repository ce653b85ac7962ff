from __future__ import annotations

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.printers import table

V1 = "meta.k8s.io/v1"


def test_partial_object_metadata() -> None:
    obj = {"spec": {}, "metadata": {"labels": {"a": "b"}, "name": "x", "creationTimestamp": None}}
    made = table.partial_metadata(obj, V1, custom=True)
    assert made == {"kind": "PartialObjectMetadata", "apiVersion": V1, "metadata": {"name": "x", "labels": {"a": "b"}}}
    assert list(made["metadata"]) == ["name", "labels"]
    assert table.partial_metadata({}, "meta.k8s.io/v1beta1")["apiVersion"] == "meta.k8s.io/v1beta1"


def test_partial_object_is_cached() -> None:
    document = Document({"metadata": {"name": "x"}})
    assert table.reader(V1)(document) is table.reader(V1)(document)
    assert table.reader("meta.k8s.io/v1beta1")(document).object["apiVersion"] == "meta.k8s.io/v1beta1"


def test_partial_object_metadata_has_a_protobuf_type() -> None:
    assert table.kind(V1).type is not None
    assert table.kind(V1) is table.kind(V1)
    assert table.list_kind(V1).kind == "PartialObjectMetadataList"


def test_ordered_stored_metadata_is_shared() -> None:
    metadata = {"name": "x", "annotations": {"a": "b"}}
    assert table.partial_metadata({"metadata": metadata}, V1, ("apps", "deployments"))["metadata"] is metadata


def test_conversion_annotations_are_omitted() -> None:
    field = "deprecated.deployment.rollback.to"
    made = table.partial_metadata({"metadata": {"name": "x", "annotations": {field: "1"}}}, V1, ("apps", "deployments"))
    assert made["metadata"] == {"name": "x"}
    kept = table.partial_metadata({"metadata": {"annotations": {field: "1", "a": "b"}}}, V1, ("apps", "deployments"))
    assert kept["metadata"] == {"annotations": {"a": "b"}}


def test_json_of_metadata_is_cut_out_of_that_of_objects_or_made() -> None:
    annotations = {"deprecated.deployment.rollback.to": "1", "a": "<"}
    objects = [
        {"metadata": {"name": "a"}, "spec": {}},
        {"metadata": {"name": "<b>"}, "spec": {"a": 1}},
        {"metadata": {"name": "c", "annotations": annotations}, "spec": {"a": 1}},
        {"metadata": {"name": "d"}, "data": {"a": "b"}},
    ]
    for resource in (("", "pods"), ("apps", "deployments")):
        expected = b",".join(json.dumps(table.partial_metadata(obj, V1, resource)) for obj in objects)
        documents = [Document(dict(obj)) for obj in objects]
        assert b"".join(table.metadata_items(documents, V1, resource)) == expected
        documents = [Document(dict(obj)) for obj in objects]
        for number, document in enumerate(documents):
            assert document.json
            if number % 2:
                document.pack()
        assert b"".join(table.metadata_items(documents, V1, resource)) == expected
