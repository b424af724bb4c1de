package exchange

import "testing"

func TestAppendWithout(t *testing.T) {
	f := func(object, want string) {
		t.Helper()
		if got := appendWithout([]byte(">"), []byte(object), "code", "error"); string(got) != ">"+want {
			t.Errorf("%s: %s, want %s", object, got, want)
		}
	}
	f(`{}`, `{}`)
	f(`{"code":1}`, `{}`)
	f(`{"code":1,"a":{},"error":2,"code":{"code":3}}`, `{"a":{}}`)
	f(`{"a":"{","b":2}`, `{"a":"{","b":2}`)
	f(`{"Code":1,"cod":2,"cod\"":3}`, `{"Code":1,"cod":2,"cod\"":3}`)
	f(`{"\u0063\u006f\u0064\u0065":1,"\u0063\u006F\u0064\u0065x":2}`, `{"\u0063\u006F\u0064\u0065x":2}`)
}
