package main

import (
	"context"
	"math"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/loadgen"
)

// plan makes the plan of the flags; all its errors are about usage.
func (f *benchFlags) plan(cmd *cobra.Command, args []string) (loadgen.Plan, error) {
	p := loadgen.Plan{
		Conns: f.conns, Depth: f.depth, Warmup: f.warmup, Duration: f.duration, Count: f.count,
		Timeout: f.timeout, Interval: f.interval, Seed: f.seed,
	}
	var err error
	if p.Target, err = f.benchTarget(cmd, args); err != nil {
		return p, err
	}
	if p.Schedule, err = parseRate(f.rate); err != nil {
		return p, err
	}
	if p.Mix, err = f.mix(&p); err != nil {
		return p, err
	}
	if f.count > 0 && !cmd.Flags().Changed("duration") && f.interval > 0 {
		p.OnlyCount()
	}
	return p, cli.AsUsage(p.Check(), helpHint(cmd))
}

// benchTarget finds the server: the argument, or where one with the same settings would listen.
func (f *benchFlags) benchTarget(cmd *cobra.Command, args []string) (t loadgen.Target, err error) {
	if t.Protocol = f.protocol; t.Protocol == "" {
		t.Protocol = loadgen.ProtocolKernel
		if len(args) > 0 && (strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://")) {
			t.Protocol = loadgen.ProtocolHTTP
		}
	}
	if len(args) > 0 {
		t.Addr = args[0]
	} else if t.Addr, err = f.settingsTarget(cmd, t.Protocol); err != nil {
		return t, err
	}
	cfg, err := f.tls()
	if err != nil {
		return t, err
	}
	network, addr, secure, err := t.Place()
	if err != nil {
		return t, cli.AsUsage(err, "")
	}
	if t.Protocol == loadgen.ProtocolToolhost && network != "unix" {
		t.Token = os.Getenv("MACHINA_API_TOKEN")
	}
	f.target = t.Addr
	t.Dial = func(ctx context.Context) (net.Conn, error) {
		return loadgen.Dial(ctx, network, addr, secure || cfg != nil, cfg)
	}
	return t, nil
}

// settingsTarget is the address of the first listener that the settings give a protocol.
func (f *benchFlags) settingsTarget(cmd *cobra.Command, protocol string) (string, error) {
	if protocol == loadgen.ProtocolKernel {
		addr, err := f.server(cmd)
		return addr, err
	}
	c, err := loadConfig(cmd)
	if err != nil {
		return "", err
	}
	addrs, scheme := c.HTTP.ListenAddr, "http://"
	if protocol == loadgen.ProtocolToolhost {
		addrs, scheme = c.Toolhost.ListenAddr, ""
	}
	if len(addrs) == 0 || chosenLater(addrs[0]) || scheme != "" && strings.Contains(addrs[0], "://") {
		return "", cli.Errorf(cli.CodeUsage, "cannot find a server: no setting says where one speaks %s", protocol).WithHint("name it: trunkline bench TARGET --protocol " + protocol)
	}
	return scheme + addrs[0], nil
}

// parseRate reads --rate.
func parseRate(text string) (s loadgen.Schedule, err error) {
	bad := cli.Errorf(cli.CodeUsage, "cannot use --rate %q: want requests/s like 1000, a ramp like 100..5000, or max", text)
	if text == "max" {
		return loadgen.Schedule{Kind: loadgen.Max}, nil
	}
	from, to, ramp := strings.Cut(text, "..")
	if !ramp {
		to = from
	}
	if s.From, err = parseNumber(from); err != nil {
		return s, bad
	}
	if s.To, err = parseNumber(to); err != nil {
		return s, bad
	}
	if ramp {
		s.Kind = loadgen.Ramp
	}
	return s, nil
}

func parseNumber(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err == nil && (n < 0 || math.IsNaN(n) || math.IsInf(n, 0)) {
		err = strconv.ErrRange
	}
	return n, err
}

// mix reads --method and --body. A body may be given for a method of the default mix, too.
func (f *benchFlags) mix(p *loadgen.Plan) ([]loadgen.Share, error) {
	mix := loadgen.DefaultMix(p.Target.Protocol)
	if len(f.methods) > 0 {
		mix = nil
	}
	for _, text := range f.methods {
		name, weight, given := strings.Cut(text, "=")
		s := loadgen.Share{Name: name, Weight: 1}
		if given {
			var err error
			if s.Weight, err = strconv.Atoi(weight); err != nil {
				return nil, cli.Errorf(cli.CodeUsage, "cannot use --method %q: want NAME or NAME=WEIGHT", text)
			}
		}
		mix = append(mix, s)
	}
	for _, text := range f.bodies {
		if err := addBody(mix, text); err != nil {
			return nil, err
		}
	}
	return mix, nil
}

func addBody(mix []loadgen.Share, text string) error {
	name, body, given := strings.Cut(text, "=")
	if !given {
		return cli.Errorf(cli.CodeUsage, "cannot use --body %q: want NAME=JSON", text)
	}
	if path, isFile := strings.CutPrefix(body, "@"); isFile {
		data, err := os.ReadFile(path)
		if err != nil {
			return cli.Errorf(cli.CodeUsage, "cannot use --body %s: %w", name, err)
		}
		body = string(data)
	}
	for i := range mix {
		if mix[i].Name == name || mix[i].Name == "kernel."+name || "kernel."+mix[i].Name == name {
			mix[i].Body = []byte(body)
			return nil
		}
	}
	return cli.Errorf(cli.CodeUsage, "cannot use --body %s: no --method has that name", name)
}

// tolerance is how many failures are no failure of the run.
type tolerance struct {
	text    string
	number  int64
	percent float64
	part    bool
}

func parseMaxErrors(text string) (t tolerance, err error) {
	t.text = text
	number, part := strings.CutSuffix(text, "%")
	if t.part = part; part {
		if t.percent, err = parseNumber(number); err == nil && t.percent <= 100 {
			return t, nil
		}
	} else if t.number, err = strconv.ParseInt(number, 10, 64); err == nil && t.number >= 0 {
		return t, nil
	}
	return t, cli.Errorf(cli.CodeUsage, "cannot use --max-errors %q: want a number or a part like 0.1%%", text)
}

func (t *tolerance) exceeded(failed, all int64) bool {
	if t.part {
		return float64(failed)*100 > t.percent*float64(all)
	}
	return failed > t.number
}
