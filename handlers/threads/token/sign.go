package token

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// NewKey makes an Ed25519 key pair for development, both halves in PEM.
func NewKey() (private, public []byte, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil, nil, err
	}
	pubDER, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pubDER}), nil
}

// Sign returns a token with the claims of c, whose times are whole seconds, by a private key of
// NewKey.
func Sign(private []byte, c *Claims, issuer, audience string) (string, error) {
	block, _ := pem.Decode(private)
	if block == nil {
		return "", errors.New("want a private key in PEM")
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", err
	}
	ed, ok := k.(ed25519.PrivateKey)
	if !ok {
		return "", fmt.Errorf("cannot sign with a key of type %T: want Ed25519", k)
	}
	for i, value := range []string{c.Agent, c.Workspace, c.Session, c.ID} {
		if !identifies(value) {
			return "", fmt.Errorf("cannot use %q as %s: want 1 to %d bytes that are not blank and have no control character", value, claimNames.Name(claimAgent+i), maxClaimBytes)
		}
	}
	return jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": issuer, "aud": audience, "agent_id": c.Agent, "workspace_id": c.Workspace, "session_id": c.Session, "jti": c.ID,
		"role": c.Role.String(), "iat": int64(c.Issued), "exp": int64(c.Expires),
	}).SignedString(ed)
}

// lastSecond is the last one that a time shows with four digits of its year.
const lastSecond = 253402300799

// Until returns when c expires, at most the end of the year 9999.
func (c *Claims) Until() time.Time {
	seconds, part := math.Modf(min(c.Expires, lastSecond))
	return time.Unix(int64(seconds), int64(part*1e9)).UTC()
}
