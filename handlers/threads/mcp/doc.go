// Package mcp serves agent threads to clients of the Model Context Protocol over streamable HTTP
// (threads §2.2): nine tools, one for each method.
//
// The official SDK is the engine. In front of it are the checks that it leaves to its user, which
// are the origin and the token, and a scanner that answers ordinary tool calls by itself. The
// scanner gives the answer that the SDK would give, byte by byte; what it does not know to be
// ordinary goes to the SDK untouched.
package mcp
