package node

import (
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"trunkline/fuzz/kit"
)

// operator signs the accounts of servers that have no users in their settings.
type operator struct {
	t   *testing.T
	key nkeys.KeyPair
}

func newKey(t *testing.T, kind nkeys.PrefixByte) (nkeys.KeyPair, string) {
	t.Helper()
	key, err := nkeys.CreatePair(kind)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return key, public
}

// account returns the token of an account and a file with the credentials of a user of it.
func (o *operator) account(streams bool) (public, token, file string) {
	o.t.Helper()
	key, public := newKey(o.t, nkeys.PrefixByteAccount)
	claims := jwt.NewAccountClaims(public)
	if streams {
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	}
	token, err := claims.Encode(o.key)
	if err != nil {
		o.t.Fatal(err)
	}
	userKey, user := newKey(o.t, nkeys.PrefixByteUser)
	userToken, err := jwt.NewUserClaims(user).Encode(key)
	if err != nil {
		o.t.Fatal(err)
	}
	seed, err := userKey.Seed()
	if err != nil {
		o.t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(userToken, seed)
	if err != nil {
		o.t.Fatal(err)
	}
	return public, token, string(text)
}

func TestCredentialsFiles(t *testing.T) {
	t.Parallel()
	key, public := newKey(t, nkeys.PrefixByteOperator)
	o := &operator{t, key}
	system, systemToken, systemFile := o.account(false)
	app, appToken, appFile := o.account(true)
	claims := jwt.NewOperatorClaims(public)
	claims.SystemAccount = system
	f := operate(t, 1, func(_ int, so *server.Options) {
		so.Users, so.Accounts, so.SystemAccount = nil, nil, system
		so.TrustedOperators = []*jwt.OperatorClaims{claims}
		accounts := new(server.MemAccResolver)
		for account, token := range map[string]string{system: systemToken, app: appToken} {
			if err := accounts.Store(account, token); err != nil {
				t.Fatal(err)
			}
		}
		so.AccountResolver = accounts
	})
	c := f.config(new(kit.Text))
	c.Replicas, c.Credentials, c.System = 1, appFile, systemFile
	n, err := Connect(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if h := n.Health(t.Context()); !h.Quorum || h.Problem != "" || len(h.Peers) != 1 {
		t.Errorf("%+v", h)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Error(err)
	}
	_, _, strange := o.account(true) // of an account that the servers do not know
	c.Credentials = strange
	refused(t, c)
}
