"""Kafka's protocol messages as plain data: requests and responses of all APIs in all versions.

>>> from magicbyte.message import ApiKeys, Errors, decode_request, encode_request
>>> frame = encode_request("Metadata", 12, {"topics": None}, header={"correlationId": 7, "clientId": "me"})
>>> request = decode_request(frame)
>>> request.api, request.header["clientId"], request.body["topics"]
('Metadata', 'me', None)

Fields have the names of Kafka's JSON (`throttleTimeMs`). Numbers and booleans are as in JSON, bytes and
record sets are bytes (`magicbyte.read_batches` reads the latter), a UUID is the text that Kafka's tools
print. A text that is not UTF-8 has surrogate escapes. Tagged fields are there if the frame has them; those
that no definition names are in ``_unknownTaggedFields``, bytes by tag.

The name of an API in the source tells type checkers which body belongs to it: they refuse a field that no
version has in ``encode_request("Fetch", 12, body)``, and know each field of the body that
``decode_response(frame, "Fetch", 12)`` returns. The types are in ``magicbyte.message.bodies``, which exists
for type checkers only: import them under ``if TYPE_CHECKING``. `ApiKeys` are the numbers of APIs, and
`Errors` are error codes:

>>> ApiKeys.METADATA, Errors(6), Errors(6).is_retriable, Errors(999).name
(<ApiKeys.METADATA: 3>, <Errors.NOT_LEADER_OR_FOLLOWER: 6>, True, '999')

A frame is what follows the four bytes of its size. Its bytes are not trusted: any that are not exactly one
message raise `magicbyte.Error` with the kind ``"invalid_message"``, the byte in the frame (`position`),
the `field`, and a text that names the message, its version and the path to the field. An API or a version
that is not known has the kind ``"unsupported_version"``. Memory is linear in the size of the frame.

What is decoded is complete, so that `encode_request` gives the same bytes. With ``secrets=False`` it is for
logs and people: passwords, keys and tokens are ``"[hidden]"`` in texts, and None where they are bytes. Which
fields are secret is a property of the message's definition; of configs, the name decides, as in
``ssl.key.password``.
"""

from magicbyte.message.api_keys import ApiKeys
from magicbyte.message.codec import decode_request, decode_response, encode_request, encode_response
from magicbyte.message.errors import Errors
from magicbyte.message.model import Api, Message, apis, error_name

__all__ = [
    "Api",
    "ApiKeys",
    "Errors",
    "Message",
    "apis",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "error_name",
]
