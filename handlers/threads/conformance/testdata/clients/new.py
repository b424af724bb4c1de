import asyncio, contextlib, json, os, sys
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

async def answer(client, tool, args):
    try:
        if not tool:
            info = client.server_info
            return {"server": info.name if info else "threads", "tools": [t.name for t in (await client.list_tools()).tools]}
        r = await client.call_tool(tool, args)
        return {"failed": bool(r.is_error), "result": r.structured_content, "text": r.content[0].text}
    except MCPError as e:
        return {"code": e.error.code, "message": str(e)}

async def main():
    clients = {}
    async with contextlib.AsyncExitStack() as stack:
        while line := await asyncio.to_thread(sys.stdin.readline):
            q = json.loads(line)
            key = q["url"] + q["token"]
            if key not in clients:
                http = await stack.enter_async_context(httpx2.AsyncClient(headers={"Authorization": "Bearer " + q["token"]}))
                clients[key] = await stack.enter_async_context(Client(streamable_http_client(q["url"], http_client=http), mode=os.environ["MODE"]))
            print(json.dumps(await answer(clients[key], q["tool"], q["args"])), flush=True)

asyncio.run(main())
