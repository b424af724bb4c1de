package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/smallfile"
	"trunkline/handlers/threads/token"
)

// devIssuer is the issuer of tokens that are signed here, unless a flag names another.
const devIssuer = "trunkline-dev"

func newTokenCmd() *cobra.Command {
	return group(&cobra.Command{
		Use:   "token",
		Short: "Make, sign and check bearer tokens of agent threads",
		Long: "Make a key pair for development, sign tokens with it, and check any token by the rules of agent threads. No identity\n" +
			"provider is needed that way; where there is one, 'check' shows why one of its tokens is refused.",
		Example: "  trunkline token key dev.pem\n  trunkline token sign --key dev.pem --agent reviewer --workspace w1 --role participant > token\n" +
			"  trunkline token check --public-key dev.pem.pub - < token",
	}, "key, sign and check", newTokenKeyCmd(), newTokenSignCmd(), newTokenCheckCmd())
}

func newTokenKeyCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "key FILE",
		Short:   "Make an Ed25519 key pair: FILE is the private key, FILE.pub the public one",
		Long:    "Make an Ed25519 key pair in PEM. FILE gets the private key, which its owner alone can read, FILE.pub the public one.\nFiles that are there are not replaced.",
		Example: "  trunkline token key dev.pem",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			private, public, err := token.NewKey()
			if err != nil {
				return err
			}
			if err := create(args[0], private, 0o600); err != nil {
				return err
			}
			if err := create(args[0]+".pub", public, 0o644); err != nil {
				return errors.Join(err, os.Remove(args[0]))
			}
			return nil
		},
	}
}

// create writes a new file.
func create(name string, text []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	switch {
	case errors.Is(err, os.ErrExist):
		return &cli.Error{Code: cli.CodeConflict, Err: err, Hint: "a key that is in use is not replaced; name another file"}
	case err != nil:
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

func newTokenSignCmd() *cobra.Command {
	var keyFile, role, issuer, audience string
	var ttl time.Duration
	var c token.Claims
	cmd := &cobra.Command{
		Use:     "sign",
		Short:   "Sign a token with a key of 'token key'",
		Long:    "Sign a token and print it. What a flag does not name is drawn at random: the session, and the token's id.",
		Example: "  trunkline token sign --key dev.pem --agent reviewer --workspace w1 --role participant\n  trunkline token sign --key dev.pem --agent lead --workspace w1 --role coordinator --ttl 15m",
		Args:    cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&keyFile, "key", "", "private key of 'token key'")
	f.StringVar(&c.Agent, "agent", "", "agent_id: who the bearer is")
	f.StringVar(&c.Workspace, "workspace", "", "workspace_id: whose threads it may use")
	f.StringVar(&c.Session, "session", "", "session_id (default random)")
	f.StringVar(&c.ID, "id", "", "jti, by which the token can be revoked (default random)")
	f.StringVar(&role, "role", token.Participant.String(), "participant, coordinator, auditor or operator")
	f.StringVar(&issuer, "issuer", devIssuer, "iss, the issuer that the server expects")
	f.StringVar(&audience, "audience", token.DefaultAudience, "aud, the audience that the server expects")
	f.DurationVar(&ttl, "ttl", time.Hour, "how long the token is valid, at least one second")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if keyFile == "" || c.Agent == "" || c.Workspace == "" {
			return cli.Errorf(cli.CodeUsage, "cannot sign without --key, --agent and --workspace")
		}
		if c.Role = token.ParseRole(role); c.Role == 0 {
			return cli.Errorf(cli.CodeUsage, "cannot use the role %q", role).WithHint("participant, coordinator, auditor or operator")
		}
		if ttl < time.Second {
			return cli.Errorf(cli.CodeUsage, "cannot sign a token for %v: at least 1s", ttl)
		}
		private, err := smallfile.Read(keyFile)
		if err != nil {
			return err
		}
		if c.Session == "" {
			c.Session = "sess_" + rand.Text()
		}
		if c.ID == "" {
			c.ID = rand.Text()
		}
		now := time.Now()
		c.Issued, c.Expires = float64(now.Unix()), float64(now.Add(ttl).Unix())
		text, err := token.Sign(private, &c, issuer, audience)
		if err != nil {
			return cli.Errorf(cli.CodeUsage, "cannot sign: %w", err)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
		return err
	}
	return cmd
}

func newTokenCheckCmd() *cobra.Command {
	var cfg token.Config
	cmd := &cobra.Command{
		Use:   "check TOKEN",
		Short: "Check a token as a server would, and print its claims or the reason of the refusal",
		Long: "Check a token by the rules of agent threads; - reads it from stdin. Exactly one flag names the keys. A token that is refused\n" +
			"is exit code 4, a key set that cannot be read is 5.",
		Example: "  trunkline token check --public-key dev.pem.pub - < token\n  trunkline token check --key-set-url https://issuer.example/jwks --issuer https://issuer.example - < token",
		Args:    cobra.ExactArgs(1),
	}
	f := cmd.Flags()
	f.StringVar(&cfg.JWKSURL, "key-set-url", "", "address of a JSON Web Key Set, https unless it is of this machine")
	f.StringVar(&cfg.JWKSFile, "key-set", "", "file with a JSON Web Key Set")
	f.StringVar(&cfg.PublicKeyFile, "public-key", "", "file with a public key or certificate, PEM")
	f.StringVar(&cfg.HS256SecretFile, "secret", "", "file with a shared secret of at least 32 bytes")
	f.StringVar(&cfg.Issuer, "issuer", devIssuer, "what iss has to be")
	f.StringVar(&cfg.Audience, "audience", token.DefaultAudience, "what aud has to be, or to contain")
	f.DurationVar(&cfg.ClockSkew, "clock-skew", 0, "by how much clocks may differ, at most 5m")
	f.DurationVar(&cfg.MaxTokenTTL, "max-ttl", 0, "longest life of a token; 0 does not bound it")
	f.StringVar(&cfg.RevocationFile, "revocations", "", "file with revocations, a JSON object in each line")
	f.StringVar(&cfg.WorkspaceID, "workspace", "", "the only workspace that is served")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := argument(cmd, args, "")
		if err != nil {
			return err
		}
		v, err := token.New(cfg)
		if errors.Is(err, token.ErrNoKeySource) {
			return cli.AsUsage(err, "--public-key, --key-set, --key-set-url or --secret names the keys")
		}
		if err != nil {
			return cli.Errorf(cli.CodeFailed, "%w", err)
		}
		defer v.Close()
		c, err := v.Verify(string(bytes.TrimSpace(text)))
		var refusal *token.Refusal
		switch {
		case errors.As(err, &refusal) && refusal.Unavailable:
			return &cli.Error{Code: cli.CodeUnavailable, Err: err, Hint: "the key set could not be read"}
		case errors.Is(err, token.ErrOutOfScope):
			return &cli.Error{Code: cli.CodeNotAllowed, Err: err, Hint: "--workspace names the only one that is served"}
		case err != nil:
			return &cli.Error{Code: cli.CodeNotAllowed, Err: err}
		}
		return showClaims(cmd, c)
	}
	return cmd
}

func showClaims(cmd *cobra.Command, c *token.Claims) error {
	var rows table
	rows.add("agent_id", "%s", c.Agent)
	rows.add("workspace_id", "%s", c.Workspace)
	rows.add("role", "%s", c.Role)
	rows.add("session_id", "%s", c.Session)
	rows.add("jti", "%s", c.ID)
	rows.add("expires_at", "%s", c.Until().Format(time.RFC3339))
	return cli.Show(cmd, map[string]string{"agent_id": c.Agent, "workspace_id": c.Workspace, "role": c.Role.String(), "session_id": c.Session,
		"jti": c.ID, "expires_at": c.Until().Format(time.RFC3339)}, rows)
}
