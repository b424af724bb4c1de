import asyncio, json, sys
from langchain_mcp_adapters.client import MultiServerMCPClient

async def answer(q):
    client = MultiServerMCPClient({"threads": {"transport": "streamable_http", "url": q["url"], "headers": {"Authorization": "Bearer " + q["token"]}}})
    tools = {t.name: t for t in await client.get_tools()}
    if not q["tool"]:
        return {"server": "threads", "tools": list(tools)}
    m = await tools[q["tool"]].ainvoke({"type": "tool_call", "id": "1", "name": q["tool"], "args": q["args"]})
    return {"failed": m.status == "error", "result": (m.artifact or {}).get("structured_content"), "text": m.content[0]["text"]}

async def main():
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            a = await answer(json.loads(line))
        except Exception as e:
            a = {"message": repr(e)}
        print(json.dumps(a), flush=True)

asyncio.run(main())
