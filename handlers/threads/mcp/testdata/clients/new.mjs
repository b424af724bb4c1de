import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
const { URL: url, TOKEN: token, MODE: mode } = process.env;
const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: mode === 'legacy' ? 'legacy' : { pin: mode } } });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
const tools = (await client.listTools()).tools.map((t) => t.name);
const good = await client.callTool({ name: 'ack_read', arguments: { thread_id: 'th_1', last_read_seq: 1 } });
const bad = await client.callTool({ name: 'get_thread', arguments: {} });
let unknown = 0;
try { await client.callTool({ name: 'nope', arguments: {} }); } catch (e) { unknown = e.code; }
const server = client.getServerVersion().name;
await client.close();
console.log(JSON.stringify({ server, tools, good: good.structuredContent, text: good.content[0].text, bad: bad.isError, envelope: bad.content[0].text, unknown }));
