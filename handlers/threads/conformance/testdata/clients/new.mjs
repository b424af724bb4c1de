import readline from 'node:readline';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
const mode = process.env.MODE;
const clients = new Map();
async function open(url, token) {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: mode === 'legacy' ? 'legacy' : { pin: mode } } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
  return client;
}
