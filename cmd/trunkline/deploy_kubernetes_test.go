package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"trunkline/cmd/trunkline/internal/config"
)

const manifests = "../../deploy/kubernetes/"

// The manifests as far as ours go. They are decoded strictly: a field that is misspelled, or in the
// wrong place, is an error.
type (
	kubeMetadata struct {
		Name   string
		Labels map[string]string
	}
	kubeSelector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	kubeStatefulSet struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   kubeMetadata
		Spec       struct {
			ServiceName         string `yaml:"serviceName"`
			Replicas            int
			PodManagementPolicy string `yaml:"podManagementPolicy"`
			MinReadySeconds     int    `yaml:"minReadySeconds"`
			Selector            kubeSelector
			Template            struct {
				Metadata kubeMetadata
				Spec     kubePodSpec
			}
			VolumeClaimTemplates []struct {
				Metadata kubeMetadata
				Spec     struct {
					AccessModes []string `yaml:"accessModes"`
					Resources   struct{ Requests map[string]string }
				}
			} `yaml:"volumeClaimTemplates"`
		}
	}
	kubePodSpec struct {
		TerminationGracePeriodSeconds int   `yaml:"terminationGracePeriodSeconds"`
		AutomountServiceAccountToken  *bool `yaml:"automountServiceAccountToken"`
		EnableServiceLinks            *bool `yaml:"enableServiceLinks"`
		SecurityContext               struct {
			RunAsNonRoot        bool                  `yaml:"runAsNonRoot"`
			RunAsUser           int                   `yaml:"runAsUser"`
			RunAsGroup          int                   `yaml:"runAsGroup"`
			FSGroup             int                   `yaml:"fsGroup"`
			FSGroupChangePolicy string                `yaml:"fsGroupChangePolicy"`
			SeccompProfile      struct{ Type string } `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
		TopologySpreadConstraints []struct {
			MaxSkew           int          `yaml:"maxSkew"`
			TopologyKey       string       `yaml:"topologyKey"`
			WhenUnsatisfiable string       `yaml:"whenUnsatisfiable"`
			LabelSelector     kubeSelector `yaml:"labelSelector"`
		} `yaml:"topologySpreadConstraints"`
		Containers []kubeContainer
		Volumes    []kubeVolume
	}
	kubeVolume struct {
		Name     string
		EmptyDir *struct{} `yaml:"emptyDir"`
		Secret   *struct {
			SecretName  string `yaml:"secretName"`
			DefaultMode int    `yaml:"defaultMode"`
		}
	}
	kubeMount struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	}
	kubeContainer struct {
		Name, Image string
		Args        []string
		Env         []struct {
			Name, Value string
			ValueFrom   struct {
				FieldRef struct {
					FieldPath string `yaml:"fieldPath"`
				} `yaml:"fieldRef"`
			} `yaml:"valueFrom"`
		}
		Ports []struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}
		ReadinessProbe  kubeProbe `yaml:"readinessProbe"`
		LivenessProbe   kubeProbe `yaml:"livenessProbe"`
		Resources       struct{ Requests, Limits map[string]string }
		SecurityContext struct {
			AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
			ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
			Capabilities             struct{ Drop []string }
		} `yaml:"securityContext"`
		VolumeMounts []kubeMount `yaml:"volumeMounts"`
	}
	kubeProbe struct {
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`

		PeriodSeconds    int `yaml:"periodSeconds"`
		TimeoutSeconds   int `yaml:"timeoutSeconds"`
		FailureThreshold int `yaml:"failureThreshold"`
	}
	kubeService struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   kubeMetadata
		Spec       struct {
			ClusterIP                string `yaml:"clusterIP"`
			PublishNotReadyAddresses bool   `yaml:"publishNotReadyAddresses"`
			Selector                 map[string]string
			Ports                    []struct {
				Name       string
				Port       int
				TargetPort string `yaml:"targetPort"`
			}
		}
	}
	kubeDisruptionBudget struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   kubeMetadata
		Spec       struct {
			MaxUnavailable             *int   `yaml:"maxUnavailable"`
			UnhealthyPodEvictionPolicy string `yaml:"unhealthyPodEvictionPolicy"`
			Selector                   kubeSelector
		}
	}
	kubeNetworkPolicy struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   kubeMetadata
		Spec       struct {
			PodSelector kubeSelector `yaml:"podSelector"`
			PolicyTypes []string     `yaml:"policyTypes"`
			Ingress     []struct {
				From []struct {
					PodSelector       kubeSelector `yaml:"podSelector"`
					NamespaceSelector kubeSelector `yaml:"namespaceSelector"`
				}
				Ports []struct{ Port string }
			}
		}
	}
	kubeServiceMonitor struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   kubeMetadata
		Spec       struct {
			Selector  kubeSelector
			Endpoints []struct {
				Port, Path, Interval string
				Authorization        struct {
					Credentials struct{ Name, Key string }
				}
			}
		}
	}
	kubeKustomization struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Resources  []string
		Patches    []struct {
			Path   string
			Target struct{ Kind, Name string }
		}
	}
)

func (c kubeContainer) env() map[string]string {
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	return env
}

// readManifest decodes a file of one document.
func readManifest[T any](t *testing.T, name string) (m T) {
	t.Helper()
	text, err := os.ReadFile(manifests + name)
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := dec.Decode(new(any)); err != io.EOF {
		t.Errorf("%s: more than one document: %v", name, err)
	}
	return m
}

// TestManifests compares the manifests with each other, with the image and with the program.
func TestManifests(t *testing.T) {
	set := readManifest[kubeStatefulSet](t, "statefulset.yaml")
	labels := set.Spec.Template.Metadata.Labels
	same := func(what string, got map[string]string) {
		t.Helper()
		if len(got) != 1 || got["app.kubernetes.io/name"] != labels["app.kubernetes.io/name"] {
			t.Errorf("%s selects %v, the pod has %v", what, got, labels)
		}
	}
	svc, budget := readManifest[kubeService](t, "service.yaml"), readManifest[kubeDisruptionBudget](t, "poddisruptionbudget.yaml")
	policy, monitor := readManifest[kubeNetworkPolicy](t, "networkpolicy.yaml"), readManifest[kubeServiceMonitor](t, "servicemonitor.yaml")
	same("the set", set.Spec.Selector.MatchLabels)
	same("the service", svc.Spec.Selector)
	same("the budget", budget.Spec.Selector.MatchLabels)
	same("the policy", policy.Spec.PodSelector.MatchLabels)
	same("the monitor", monitor.Spec.Selector.MatchLabels)
	if set.Spec.ServiceName != svc.Metadata.Name || set.Spec.Replicas != 1 || budget.Spec.MaxUnavailable == nil {
		t.Errorf("service %q, %d replicas of a server that has no second one, budget %v", set.Spec.ServiceName, set.Spec.Replicas, budget.Spec.MaxUnavailable)
	}
	pod := set.Spec.Template.Spec
	c := pod.Containers[0]
	checkPorts(t, c, svc)
	var named []string
	for _, p := range c.Ports {
		named = append(named, p.Name)
	}
	for _, port := range []string{c.ReadinessProbe.HTTPGet.Port, c.LivenessProbe.HTTPGet.Port, monitor.Spec.Endpoints[0].Port} {
		if port != "admin" {
			t.Errorf("port %s does not answer probes and scrapes", port)
		}
	}
	scraper := monitor.Spec.Endpoints[0].Authorization.Credentials
	if i := slices.IndexFunc(pod.Volumes, func(v kubeVolume) bool {
		return v.Secret != nil &&
			v.Secret.SecretName == scraper.Name
	}); i < 0 ||
		!slices.ContainsFunc(c.VolumeMounts, func(m kubeMount) bool {
			return m.Name == pod.Volumes[i].Name && m.MountPath+"/"+scraper.Key == c.env()["TRUNKLINE_ADMIN_CONSOLE_TOKEN_FILE"]
		}) {
		t.Errorf("scrapes show %+v, which is not the token of viewers", scraper)
	}
	for _, rule := range policy.Spec.Ingress {
		for _, p := range rule.Ports {
			if !slices.Contains(named, p.Port) {
				t.Errorf("the policy names port %s, the pod has %q", p.Port, named)
			}
		}
	}
	checkPod(t, pod)
	for _, name := range readManifest[kubeKustomization](t, "kustomization.yaml").Resources {
		if _, err := os.Stat(manifests + name); err != nil {
			t.Error(err)
		}
	}
}

// checkPorts compares the ports of the pod with those that the program has by default, those that
// its variables set, and those of the service.
func checkPorts(t *testing.T, c kubeContainer, svc kubeService) {
	t.Helper()
	program := defaultSettings(t)
	want := map[string]string{"kernel": program.Kernel.ListenAddr[0], "http": program.HTTP.ListenAddr[0], "admin": program.Admin.ListenAddr}
	if len(c.Ports) != len(want) || len(svc.Spec.Ports) != len(want) {
		t.Errorf("%d ports of the pod, %d of the service", len(c.Ports), len(svc.Spec.Ports))
	}
	for i, p := range c.Ports {
		_, port, err := net.SplitHostPort(want[p.Name])
		set := c.env()["TRUNKLINE_"+strings.ToUpper(p.Name)+"_LISTEN_ADDR"]
		if err != nil || set != "0.0.0.0:"+port || strconv.Itoa(p.ContainerPort) != port {
			t.Errorf("%s: port %d, listens on %s, the program on %s by default", p.Name, p.ContainerPort, set, want[p.Name])
		}
		if s := svc.Spec.Ports[i]; s.Name != p.Name || s.TargetPort != p.Name || s.Port != p.ContainerPort {
			t.Errorf("the service has %+v for %+v", s, p)
		}
	}
}

// checkPod holds the pod to the image, to the time of a drain and to its restrictions.
func checkPod(t *testing.T, pod kubePodSpec) {
	t.Helper()
	c, m := pod.Containers[0], readImage(t)
	if !slices.Equal(c.Args, m.command) || !strings.HasPrefix(m.user, strconv.Itoa(pod.SecurityContext.RunAsUser)+":") {
		t.Errorf("args %q, user %d; the image has %q, %s", c.Args, pod.SecurityContext.RunAsUser, m.command, m.user)
	}
	settings := podSettings(t, c)   // every variable is a setting, and they fit together
	const closing = 4 * time.Second // what docs/operations.md asks for on top
	need := settings.Kernel.LameDuck + settings.Kernel.ShutdownGrace + closing
	if got := time.Duration(pod.TerminationGracePeriodSeconds) * time.Second; got < need {
		t.Errorf("terminationGracePeriodSeconds is %v, a drain may take %v", got, need)
	}
	limit, err := strconv.Atoi(strings.TrimSuffix(c.Resources.Limits["memory"], "Gi"))
	if want := fmt.Sprintf("%dMiB", limit*1024*9/10); err != nil || c.env()["GOMEMLIMIT"] != want {
		t.Errorf("%v: GOMEMLIMIT is %s, want %s", err, c.env()["GOMEMLIMIT"], want)
	}
	s := c.SecurityContext
	if !pod.SecurityContext.RunAsNonRoot || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("%+v %+v", pod.SecurityContext, s)
	}
	if probe := c.ReadinessProbe; settings.Kernel.LameDuck < time.Duration(probe.PeriodSeconds*probe.FailureThreshold)*time.Second {
		t.Errorf("a lame duck of %v ends before its readiness is asked for", settings.Kernel.LameDuck)
	}
	if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
		t.Error("the pod gets variables of every service")
	}
	var mounted []string
	for _, v := range c.VolumeMounts {
		mounted = append(mounted, v.MountPath)
	}
	needed := append(m.volumes, "/tmp", filepath.Dir(c.env()["TRUNKLINE_KERNEL_TLS_CERT_FILE"]),
		filepath.Dir(c.env()["TRUNKLINE_ADMIN_CONSOLE_TOKEN_FILE"]))
	if a := settings.Admin; !a.HasTokens() || a.InsecureBind || a.PublicMetrics {
		t.Errorf("everybody in the cluster reads the admin address: %+v", a)
	}
	if secret := c.env()["TRUNKLINE_CLUSTER_SECRET_FILE"]; secret != "" {
		needed = append(needed, filepath.Dir(secret))
	}
	for _, dir := range needed {
		if !slices.Contains(mounted, dir) {
			t.Errorf("nothing is mounted at %s", dir)
		}
	}
}

// podSettings returns the settings of the first pod, with files of this test.
func podSettings(t *testing.T, c kubeContainer) *config.Config {
	t.Helper()
	dir := t.TempDir()
	writeAuthority(t, dir)
	names := strings.NewReplacer("/etc/trunkline/tls", dir, "/etc/trunkline/admin", dir, "/etc/trunkline/cluster", dir,
		"/etc/trunkline/threads", dir, "$(POD_NAME)", "trunkline-0")
	var environ []string
	for name, value := range c.env() {
		environ = append(environ, name+"="+names.Replace(value))
	}
	return defaultSettings(t, environ...)
}

// TestClusterManifests compares those of a cluster with each other and with the program: what of
// them differs from those of one server.
func TestClusterManifests(t *testing.T) {
	set, nodes := readManifest[kubeStatefulSet](t, "cluster/statefulset.yaml"), readManifest[kubeService](t, "cluster/nodes.yaml")
	budget, policy := readManifest[kubeDisruptionBudget](t, "cluster/poddisruptionbudget.yaml"), readManifest[kubeNetworkPolicy](t, "cluster/networkpolicy.yaml")
	pod := set.Spec.Template.Spec
	c := pod.Containers[0]
	checkPod(t, pod)
	if set.Spec.ServiceName != nodes.Metadata.Name || nodes.Spec.ClusterIP != "None" || !nodes.Spec.PublishNotReadyAddresses || set.Spec.PodManagementPolicy != "Parallel" {
		t.Errorf("nodes do not find each other before they are ready: %q, %+v", set.Spec.ServiceName, nodes.Spec)
	}
	if n := budget.Spec.MaxUnavailable; n == nil || set.Spec.Replicas-*n <= set.Spec.Replicas/2 {
		t.Errorf("a budget of %v leaves no majority of %d", n, set.Spec.Replicas)
	}
	if s := pod.TopologySpreadConstraints; len(s) != 1 || s[0].TopologyKey != "kubernetes.io/hostname" || s[0].WhenUnsatisfiable != "DoNotSchedule" {
		t.Errorf("two nodes may share a machine: %+v", s)
	}
	if first := c.Env[0]; first.Name != "POD_NAME" || first.ValueFrom.FieldRef.FieldPath != "metadata.name" {
		t.Errorf("%+v comes before the name of the pod", first)
	}
	ports := map[string]int{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	l := podSettings(t, c).Cluster
	var want []string
	for i := range set.Spec.Replicas {
		name := fmt.Sprintf("%s-%d", set.Metadata.Name, i)
		want = append(want, fmt.Sprintf("%s=%s.%s:%d", name, name, nodes.Metadata.Name, ports["routes"]))
	}
	if !slices.Equal(l.Routes, want) || l.Node != "trunkline-0" {
		t.Errorf("routes %q of %s, want %q", l.Routes, l.Node, want)
	}
	if peers := ":" + strconv.Itoa(ports["peers"]); l.AdvertiseAddr != "trunkline-0."+nodes.Metadata.Name+peers || l.PeerAddr != "0.0.0.0"+peers || l.ListenAddr != "0.0.0.0:"+strconv.Itoa(ports["routes"]) {
		t.Errorf("%+v", l)
	}
	if last := policy.Spec.Ingress[len(policy.Spec.Ingress)-1]; len(last.Ports) != 2 || last.From[0].PodSelector.MatchLabels["app.kubernetes.io/name"] != "trunkline" {
		t.Errorf("nodes do not reach each other: %+v", last)
	}
	for _, p := range nodes.Spec.Ports {
		if ports[p.TargetPort] != p.Port {
			t.Errorf("%+v of pods with %v", p, ports)
		}
	}
	checkSame(t, "service.yaml")
	for _, name := range readManifest[kubeKustomization](t, "cluster/kustomization.yaml").Resources {
		if _, err := os.Stat(manifests + "cluster/" + name); err != nil {
			t.Error(err)
		}
	}
}

// checkSame holds a manifest of a cluster to that of one server.
func checkSame(t *testing.T, name string) {
	t.Helper()
	one, err := os.ReadFile(manifests + name)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := os.ReadFile(manifests + "cluster/" + name); err != nil || !bytes.Equal(one, other) {
		t.Errorf("%s of a cluster is another one: %v", name, err)
	}
}

// threadsPod returns the container of a pod with the component of agent threads.
func threadsPod(t *testing.T) kubeContainer {
	t.Helper()
	c := readManifest[kubeStatefulSet](t, "statefulset.yaml").Spec.Template.Spec.Containers[0]
	more := readManifest[kubeStatefulSet](t, "threads/statefulset.yaml").Spec.Template.Spec.Containers[0]
	c.Env, c.Ports, c.VolumeMounts = append(c.Env, more.Env...), append(c.Ports, more.Ports...),
		append(c.VolumeMounts, more.VolumeMounts...)
	return c
}

// TestThreadsManifests compares the component of agent threads with what it is added to, and with
// the program.
func TestThreadsManifests(t *testing.T) {
	k := readManifest[kubeKustomization](t, "threads/kustomization.yaml")
	if k.Kind != "Component" || len(k.Patches) != 3 {
		t.Errorf("%+v", k)
	}
	set, patch := readManifest[kubeStatefulSet](t, "statefulset.yaml"),
		readManifest[kubeStatefulSet](t, "threads/statefulset.yaml")
	svc, ports := readManifest[kubeService](t, "service.yaml"), readManifest[kubeService](t, "threads/service.yaml")
	pod, more := set.Spec.Template.Spec.Containers[0], patch.Spec.Template.Spec
	if patch.Metadata.Name != set.Metadata.Name || more.Containers[0].Name != pod.Name ||
		ports.Metadata.Name != svc.Metadata.Name {
		t.Errorf("it is added to %s, %s and %s", patch.Metadata.Name, more.Containers[0].Name, ports.Metadata.Name)
	}
	for _, e := range more.Containers[0].Env {
		if _, twice := pod.env()[e.Name]; twice {
			t.Errorf("%s replaces another value", e.Name)
		}
	}
	program, c := defaultSettings(t).Threads, threadsPod(t)
	settings := podSettings(t, c).Threads
	for i, want := range [][2]string{{program.ListenAddr[0], settings.ListenAddr[0]},
		{program.LinesAddr[0], settings.LinesAddr[0]}} {
		_, port, err := net.SplitHostPort(want[0])
		p, s := more.Containers[0].Ports[i], ports.Spec.Ports[i]
		if err != nil || want[1] != "0.0.0.0:"+port || strconv.Itoa(p.ContainerPort) != port || s.Port != p.ContainerPort ||
			s.Name != p.Name || s.TargetPort != p.Name {
			t.Errorf("port %+v, service %+v, listens on %s, the program on %s by default", p, s, want[1], want[0])
		}
	}
	if m := more.Containers[0].VolumeMounts[0]; more.Volumes[0].Secret == nil || m.Name != more.Volumes[0].Name ||
		filepath.Dir(c.env()["TRUNKLINE_THREADS_PUBLIC_KEY_FILE"]) != m.MountPath {
		t.Errorf("%+v is mounted for %s", m, c.env()["TRUNKLINE_THREADS_PUBLIC_KEY_FILE"])
	}
	for _, dir := range []string{"", "cluster/"} {
		policy := readManifest[kubeNetworkPolicy](t, dir+"networkpolicy.yaml")
		if from := policy.Spec.Ingress[0].From[0].PodSelector.MatchLabels; from["trunkline-client"] != "true" {
			t.Errorf("%sthe first rule is not that of clients: %v", dir, from)
		}
		if other := readManifest[kubeService](t, dir+"service.yaml"); other.Metadata.Name != svc.Metadata.Name {
			t.Errorf("%s: the service is %s", dir, other.Metadata.Name)
		}
	}
	type operation struct {
		Op, Path string
		Value    struct{ Port string }
	}
	for i, op := range readManifest[[]operation](t, "threads/networkpolicy.yaml") {
		if op.Op != "add" || op.Path != "/spec/ingress/0/ports/-" || op.Value.Port != more.Containers[0].Ports[i].Name {
			t.Errorf("%+v", op)
		}
	}
}

// TestManifestsAreStrict: a misspelled field is found.
func TestManifestsAreStrict(t *testing.T) {
	dec := yaml.NewDecoder(strings.NewReader("kind: Service\nspec:\n  selectors: {}\n"))
	dec.KnownFields(true)
	if err := dec.Decode(new(kubeService)); err == nil {
		t.Error("an unknown field is taken")
	}
}

// TestManifestsAreBuilt has kubectl put the manifests together, which takes no cluster.
func TestManifestsAreBuilt(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("there is no kubectl here")
	}
	for dir, kinds := range map[string]int{"": 4, "cluster": 5} {
		out, err := exec.Command("kubectl", "kustomize", manifests+dir).CombinedOutput()
		if err != nil || strings.Count(string(out), "\nkind: ")+strings.Count(string(out), "\nkind: Kustomization") != kinds {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// podToken is the token of viewers of pods in tests.
const podToken = "viewer-0123456789"

// writeAuthority writes what Secrets have: that of certificates tls.crt and tls.key, and ca.crt,
// which is the same certificate, that of a cluster cluster.secret, that of tokens both, that of
// agent threads public.pem.
func writeAuthority(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"trunkline"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, made, made, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{"cluster.secret": []byte(rand.Text() + rand.Text()),
		"viewer.token": []byte(podToken), "operator.token": []byte(rand.Text()),
		"public.pem": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), "tls.crt": cert, "ca.crt": cert,
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
