// Package mcp serves agent threads to clients of the Model Context Protocol over streamable HTTP
// (threads §2.2): nine tools, one for each method.
//
// A responder answers the messages of all revisions, over HTTP and on a Stream, which is stdio. It
// refuses what no two readers may understand in two ways before anything runs, splits batches, and
// answers ordinary tool calls by itself, as the SDK would, byte by byte. The official SDK has the
// rest, one message at a time, under an id of the responder's: it reads numbers as floating point.
// In front of HTTP are the checks of Host, Origin, token, Accept and media type.
package mcp
