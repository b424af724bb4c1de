// Package message holds the maps of kernel IPC as Go types with MessagePack codecs: the body of
// every request, named like its method, and every reply and stream message. Server and client
// share them. `make generate` writes them from the method table (handlers/ipc/methods.txt).
package message

//go:generate go run ./generate
