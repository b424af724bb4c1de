import asyncio, json, os
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

async def main():
    async with httpx2.AsyncClient(headers={"Authorization": "Bearer " + os.environ["TOKEN"]}) as http:
        async with Client(streamable_http_client(os.environ["URL"], http_client=http), mode=os.environ["MODE"]) as client:
            tools = [t.name for t in (await client.list_tools()).tools]
            good = await client.call_tool("ack_read", {"thread_id": "th_1", "last_read_seq": 1})
            bad = await client.call_tool("get_thread", {})
            unknown = 0
            try:
                await client.call_tool("nope", {})
            except MCPError as e:
                unknown = e.error.code
            info = client.server_info
            print(json.dumps({"server": info.name if info else "threads", "tools": tools, "good": good.structured_content, "text": good.content[0].text,
                              "bad": bad.is_error, "envelope": bad.content[0].text, "unknown": unknown}))

asyncio.run(main())
