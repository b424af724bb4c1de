// A stateless MCP server of the official SDK, whose tool answers a constant: node node.mjs FOLDER.
// Each request has a server and a transport of its own, as the SDK wants without sessions.
import { createRequire } from 'node:module'
import { createServer } from 'node:http'

const require = createRequire(process.argv[2] + '/')
const { McpServer } = require('@modelcontextprotocol/sdk/server/mcp.js')
const { StreamableHTTPServerTransport } = require('@modelcontextprotocol/sdk/server/streamableHttp.js')
const { z } = require('zod')

const page = { messages: [], next_seq: 0, has_more: false }
const inputs = { thread_id: z.string(), since_seq: z.number().optional(), limit: z.number().optional() }

function newServer() {
  const server = new McpServer({ name: 'threads', version: '1' })
  server.registerTool('read_messages', { inputSchema: inputs }, async () => ({
    content: [{ type: 'text', text: JSON.stringify(page) }], structuredContent: page,
  }))
  return server
}

const http = createServer(async (req, res) => {
  const server = newServer()
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true })
  res.on('close', () => { transport.close(); server.close() })
  await server.connect(transport)
  await transport.handleRequest(req, res)
})
http.listen(0, '127.0.0.1', () => console.log(`listening 127.0.0.1:${http.address().port}`))
