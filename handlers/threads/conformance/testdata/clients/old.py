import asyncio, contextlib, json, sys
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.exceptions import McpError

async def answer(client, hello, tool, args):
    try:
        if not tool:
            return {"server": hello.serverInfo.name, "tools": [t.name for t in (await client.list_tools()).tools]}
        r = await client.call_tool(tool, args)
        return {"failed": bool(r.isError), "result": r.structuredContent, "text": r.content[0].text}
    except McpError as e:
        return {"code": e.error.code, "message": str(e)}

async def main():
    clients = {}
    async with contextlib.AsyncExitStack() as stack:
        while line := await asyncio.to_thread(sys.stdin.readline):
            q = json.loads(line)
            key = q["url"] + q["token"]
            if key not in clients:
                read, write, _ = await stack.enter_async_context(streamablehttp_client(q["url"], headers={"Authorization": "Bearer " + q["token"]}))
                client = await stack.enter_async_context(ClientSession(read, write))
                clients[key] = client, await client.initialize()
            print(json.dumps(await answer(*clients[key], q["tool"], q["args"])), flush=True)

asyncio.run(main())
