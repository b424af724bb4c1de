import asyncio, contextlib, json, sys
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

async def answer(client, tool, args):
    try:
        if not tool:
            return {"server": client.initialize_result.server_info.name if client.initialize_result else "threads", "tools": [t.name for t in await client.list_tools()]}
        r = await client.call_tool_mcp(tool, args)
        return {"failed": bool(r.is_error), "result": r.structured_content, "text": r.content[0].text}
    except Exception as e:
        return {"code": getattr(getattr(e, "error", None), "code", 0), "message": str(e) or repr(e)}

async def main():
    clients = {}
    async with contextlib.AsyncExitStack() as stack:
        while line := await asyncio.to_thread(sys.stdin.readline):
            q = json.loads(line)
            key = q["url"] + q["token"]
            if key not in clients:
                clients[key] = await stack.enter_async_context(Client(StreamableHttpTransport(q["url"], headers={"Authorization": "Bearer " + q["token"]})))
            print(json.dumps(await answer(clients[key], q["tool"], q["args"])), flush=True)

asyncio.run(main())
