package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"trunkline/fuzz/kit/browser"
	"trunkline/handlers/ipc/ipcclient"
)

// TestClusterConsole shows the consoles of three nodes to a browser: the page of the cluster at the
// owner and at a standby, what a standby shows of other pages, and what changes when the owner dies
// and comes back.
func TestClusterConsole(t *testing.T) {
	if testing.Short() {
		t.Skip("a short run starts no browser")
	}
	b := browser.Start(t)
	r := newOrderedRig(t)
	owner := r.owner(r.nodes...)
	standby := r.but(owner)[0]
	one := &clusterClient{node: standby}
	one.surely("a process is made", func(ctx context.Context, conn *ipcclient.Conn) error {
		_, err := conn.CreateProcess(ctx, ipcclient.CreateProcess{PID: "p1", UserID: "ada"})
		return err
	})
	defer one.close()
	at := func(n *clusterNode) *browser.Console {
		c := &browser.Console{Browser: b, Base: "http://" + n.admin}
		c.Show("/console/login")
		c.Eval(`document.getElementById("token").value = arguments[0], document.querySelector("main button").click()`, orderToken)
		c.Wait(`document.querySelector(".who")?.textContent.includes("operator")`)
		return c
	}
	b.Resize(1280, 900)

	c := at(owner)
	c.Show("/console/cluster")
	c.Wait(`document.getElementById("fact-owner").textContent === arguments[0] && document.getElementById("fact-role").textContent === "owner" && document.getElementById("standby").textContent === ""`, owner.id)
	for _, n := range r.nodes {
		c.Wait(fmt.Sprintf(`!document.getElementById("node-%s-seen").classList.contains("bad") && document.getElementById("node-%[1]s-lag").textContent !== "–"`, n.id))
	}
	c.Wait(`document.getElementById("fact-taken").textContent === "1"`)
	c.Looks("cluster-owner")
	c.Show("/console/processes")
	c.Wait(browser.Texts("tbody th a") + `.join() === "p1"`)

	c = at(standby)
	note := standby.id + " is a standby of " + owner.id
	for _, path := range []string{"", "cluster", "connections", "slowlog", "store", "settings", "help"} {
		c.Show("/console/" + path)
		c.Wait(`document.getElementById("standby").textContent.startsWith(arguments[0])`, note)
		c.Looks(path + "-standby")
	}
	for _, path := range []string{"processes", "process?pid=p1", "threads", "topics", "topic?type=process.created"} {
		c.Open(c.Base + "/console/" + path)
		c.Wait(`document.querySelector("main .bad").textContent.startsWith(arguments[0])`, "503: "+note)
	}
	c.Looks("refused-standby")
	for _, e := range c.Log() {
		if !strings.Contains(e.Message, "503 (Service Unavailable)") {
			t.Errorf("a refused page: %s", e.Message)
		}
	}

	c.Show("/console/cluster")
	c.Wait(`document.getElementById("live-state").textContent === "Live."`)
	owner.kill()
	c.Wait(`!["none is known", arguments[0]].includes(document.getElementById("fact-owner").textContent)`, owner.id)
	gone := fmt.Sprintf(`document.getElementById("node-%s-seen")`, owner.id)
	c.Wait(fmt.Sprintf(`document.getElementById("node-%s-role").textContent === "was owner"`, owner.id))
	c.Wait(gone+`.classList.contains("bad") && document.getElementById("partition-0-owner").textContent !== arguments[0]`, owner.id)
	c.Looks("owner-died")
	owner.start()
	c.Wait("!" + gone + `.classList.contains("bad")`)
	c.Wait(fmt.Sprintf(`document.getElementById("node-%s-role").textContent === "standby"`, owner.id))
	c.Quiet("cluster")

	c.Show("/console/cluster")
	c.Eval(`document.querySelector(".change summary").click()`)
	c.Looks("orders")
	c.Eval(`document.querySelector(".change").scrollIntoView()`)
	c.Picture("orders-form")
	c.Eval(`document.getElementById("move-node").value = arguments[0], document.getElementById("move-reason").value = "by hand", document.querySelector("form[action$=move] button").click()`, owner.id)
	c.Wait(`document.querySelector(".done")?.textContent === "The partition has its new owner."`)
	c.Wait(`document.getElementById("fact-owner").textContent === arguments[0]`, owner.id)
	c.Quiet("move")
}
