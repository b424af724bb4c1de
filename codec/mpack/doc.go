// Package mpack reads and writes the MessagePack of the kernel protocol: request views that point
// into the received bytes, and appenders for replies with pre-encoded keys.
//
// Reading is one pass over the payload. ParseRequest finds id, service, method and body in any key
// order and checks the whole payload against the profile of kernel-ipc §3.3 on the way (string keys
// only, valid UTF-8, no bin or ext, at most wire.MaxMsgpackDepth levels, nothing after the
// top-level value). The handler that knows a body's fields then collects them with ParseFields.
// Both are iterative: nesting costs no stack.
//
// What was checked once is read again without checking: Next steps over a value, OpenMap and
// OpenList iterate over the members of a container, ReadValue decodes one value.
//
// Writing uses the smallest size class for everything and the unsigned classes for non-negative
// integers. Keys go out in the order kernel-ipc lists them. A file per message group holds the
// layout of its replies.
//
// Everything returned by reading is lent: it points into the payload and dies with it.
package mpack
