import asyncio, json, os
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.exceptions import McpError

async def main():
    async with streamablehttp_client(os.environ["URL"], headers={"Authorization": "Bearer " + os.environ["TOKEN"]}) as (read, write, _):
        async with ClientSession(read, write) as client:
            hello = await client.initialize()
            tools = [t.name for t in (await client.list_tools()).tools]
            good = await client.call_tool("ack_read", {"thread_id": "th_1", "last_read_seq": 1})
            bad = await client.call_tool("get_thread", {})
            unknown = 0
            try:
                await client.call_tool("nope", {})
            except McpError as e:
                unknown = e.error.code
            print(json.dumps({"server": hello.serverInfo.name, "tools": tools, "good": good.structuredContent, "text": good.content[0].text,
                              "bad": bad.isError, "envelope": bad.content[0].text, "unknown": unknown}))

asyncio.run(main())
