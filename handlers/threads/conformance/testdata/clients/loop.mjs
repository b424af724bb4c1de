for await (const line of readline.createInterface({ input: process.stdin })) {
  const { url, token, tool, args } = JSON.parse(line);
  if (!clients.has(url + token)) clients.set(url + token, await open(url, token));
  const client = clients.get(url + token);
  let answer;
  try {
    if (tool) {
      const r = await client.callTool({ name: tool, arguments: args });
      answer = { failed: r.isError ?? false, result: r.structuredContent, text: r.content[0].text };
    } else answer = { server: client.getServerVersion().name, tools: (await client.listTools()).tools.map((t) => t.name) };
  } catch (e) { answer = { code: e.code ?? 0, message: String(e) }; }
  console.log(JSON.stringify(answer));
}
process.exit(0);
