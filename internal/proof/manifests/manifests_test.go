// Package manifests checks the manifests of docs/operate/kubernetes and the units of
// docs/operate/systemd.md.
package manifests

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/lockstep-go/lockstep/framework"
)

const directory = "../../../docs/operate/kubernetes"

// object is what these manifests use of Kubernetes's types. A field that is not listed is an error.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   metadata
	Spec       yaml.Node
}

type metadata struct {
	Name   string
	Labels map[string]string
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type deployment struct {
	Replicas int
	Selector selector
	Strategy struct {
		RollingUpdate struct {
			MaxUnavailable int `yaml:"maxUnavailable"`
			MaxSurge       int `yaml:"maxSurge"`
		} `yaml:"rollingUpdate"`
	}
	Template struct {
		Metadata metadata
		Spec     struct {
			TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
			TopologySpreadConstraints     []struct {
				MaxSkew           int      `yaml:"maxSkew"`
				TopologyKey       string   `yaml:"topologyKey"`
				WhenUnsatisfiable string   `yaml:"whenUnsatisfiable"`
				LabelSelector     selector `yaml:"labelSelector"`
			} `yaml:"topologySpreadConstraints"`
			SecurityContext securityContext `yaml:"securityContext"`
			Containers      []container
			Volumes         []struct {
				Name   string
				Secret struct {
					SecretName  string `yaml:"secretName"`
					DefaultMode int    `yaml:"defaultMode"`
				}
			}
		}
	}
}

type container struct {
	Name, Image string
	Args        []string
	Ports       []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	Env []struct {
		Name, Value string
		ValueFrom   struct {
			FieldRef struct {
				FieldPath string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	}
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	Lifecycle      struct {
		PreStop struct {
			Sleep struct{ Seconds int }
		} `yaml:"preStop"`
	}
	Resources       struct{ Requests, Limits map[string]string }
	SecurityContext securityContext `yaml:"securityContext"`
	VolumeMounts    []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet          struct{ Path, Port string } `yaml:"httpGet"`
	PeriodSeconds    int                         `yaml:"periodSeconds"`
	FailureThreshold int                         `yaml:"failureThreshold"`
}

type securityContext struct {
	RunAsNonRoot             bool `yaml:"runAsNonRoot"`
	RunAsUser                int  `yaml:"runAsUser"`
	FSGroup                  int  `yaml:"fsGroup"`
	AllowPrivilegeEscalation bool `yaml:"allowPrivilegeEscalation"`
	ReadOnlyRootFilesystem   bool `yaml:"readOnlyRootFilesystem"`
	Capabilities             struct{ Drop []string }
}

type disruptionBudget struct {
	MaxUnavailable int `yaml:"maxUnavailable"`
	Selector       selector
}

type networkPolicy struct {
	PodSelector selector `yaml:"podSelector"`
	PolicyTypes []string `yaml:"policyTypes"`
	Ingress     []struct {
		From []struct {
			PodSelector selector `yaml:"podSelector"`
		}
		Ports []struct {
			Protocol string
			Port     int
		}
	}
}

// TestManifests reads each manifest, and compares what it says with Lockstep's defaults and with the
// other manifests.
func TestManifests(t *testing.T) {
	var deployments []deployment
	var policy networkPolicy
	labels := map[string]map[string]string{} // of each deployment's pods
	budgets := map[string]disruptionBudget{}
	for _, o := range objects(t) {
		switch o.APIVersion + " " + o.Kind {
		case "apps/v1 Deployment":
			d := decode[deployment](t, o)
			deployments = append(deployments, d)
			labels[o.Metadata.Name] = d.Template.Metadata.Labels
			require.Subset(t, d.Template.Metadata.Labels, d.Selector.MatchLabels, o.Metadata.Name)
		case "policy/v1 PodDisruptionBudget":
			budgets[o.Metadata.Name] = decode[disruptionBudget](t, o)
		case "networking.k8s.io/v1 NetworkPolicy":
			policy = decode[networkPolicy](t, o)
		default:
			t.Fatalf("%s %s is not known here", o.APIVersion, o.Kind)
		}
	}
	require.Len(t, deployments, 2)
	for name, budget := range budgets {
		require.Subset(t, labels[name], budget.Selector.MatchLabels, name)
	}
	for _, d := range deployments {
		require.GreaterOrEqual(t, d.Replicas, 2, "one holds or leads, another stands by")
		require.Subset(t, d.Template.Metadata.Labels, policy.Ingress[0].From[0].PodSelector.MatchLabels)
		requireConfigured(t, d)
	}
	require.Equal(t, 2181, policy.Ingress[0].Ports[0].Port)
}

// requireConfigured checks a deployment's environment, probes and times.
func requireConfigured(t *testing.T, d deployment) {
	t.Helper()
	c := d.Template.Spec.Containers[0]
	for _, e := range c.Env {
		if e.Name != framework.EnvAuthFile { // the file is not here
			value := e.Value
			if value == "" {
				value = "billing-0"
			}
			t.Setenv(e.Name, value)
		}
	}
	config, err := framework.ConfigFromEnv()
	require.NoError(t, err)
	require.NoError(t, config.Validate())
	require.Len(t, config.Servers, 3)
	require.Equal(t, "billing-0", config.Identity)
	require.NotContains(t, c.Resources.Limits, "cpu", "a process that is throttled loses its holds")
	stop := time.Duration(d.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	const grace = 30 * time.Second // of lockstep.Run
	if c.LivenessProbe.HTTPGet.Path == "" {
		return
	}
	require.Greater(t, stop, grace+time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second)
	require.Equal(t, "/livez", c.LivenessProbe.HTTPGet.Path)
	require.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path)
	require.Equal(t, c.Ports[0].Name, c.LivenessProbe.HTTPGet.Port)
}

// TestKubectlKnowsTheDeployments has kubectl decode them into the types of Kubernetes's API: nothing
// may be lost on the way.
func TestKubectlKnowsTheDeployments(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	for _, o := range objects(t) {
		if o.Kind != "Deployment" {
			continue
		}
		text, err := yaml.Marshal(map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind,
			"metadata": map[string]any{"name": o.Metadata.Name, "labels": o.Metadata.Labels}, "spec": &o.Spec})
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), kubectl, "set", "env", "--local", "-f", "-", "-o", "yaml", "ADDED=1")
		cmd.Stdin = bytes.NewReader(text)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		require.NoError(t, err, errs.String())
		var want, got map[string]any
		require.NoError(t, yaml.Unmarshal(text, &want))
		require.NoError(t, yaml.Unmarshal(out, &got))
		requireWithin(t, o.Metadata.Name, want, got)
	}
}

// requireWithin requires that all of want is in got.
func requireWithin(t *testing.T, path string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		for key, value := range want {
			fields, ok := got.(map[string]any)
			require.True(t, ok, path)
			require.Contains(t, fields, key, path)
			requireWithin(t, path+"."+key, value, fields[key])
		}
	case []any:
		items, ok := got.([]any)
		require.True(t, ok, path)
		require.GreaterOrEqual(t, len(items), len(want), path)
		for i := range want {
			requireWithin(t, path, want[i], items[i])
		}
	default:
		require.Equal(t, want, got, path)
	}
}

// TestUnits has systemd verify the units of the page.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	page, err := os.ReadFile("../../../docs/operate/systemd.md")
	require.NoError(t, err)
	var units []string
	for block := range strings.SplitSeq(string(page), "\n\n") {
		switch {
		case strings.HasPrefix(block, "    [Unit]") || strings.HasPrefix(block, "    [Service]\n    Type="):
			units = append(units, block)
		case strings.HasPrefix(block, "    ["):
			units[len(units)-1] += "\n\n" + block
		}
	}
	require.Len(t, units, 2)
	for _, unit := range units {
		file := filepath.Join(t.TempDir(), "billing.service")
		text := regexp.MustCompile(`(?m)^    `).ReplaceAllString(unit, "")
		text = regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAllString(text, "ExecStart=/bin/true")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
		require.NoError(t, err, string(out))
		require.NotContains(t, string(out), "billing.service", "a warning")
	}
}

// objects returns the objects of all manifests.
func objects(t *testing.T) (all []object) {
	t.Helper()
	files, err := filepath.Glob(directory + "/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		documents := yaml.NewDecoder(bytes.NewReader(text))
		documents.KnownFields(true)
		for {
			var o object
			err := documents.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			all = append(all, o)
		}
	}
	return all
}

// decode returns an object's spec. It fails if T lacks one of its fields.
func decode[T any](t *testing.T, o object) (spec T) {
	t.Helper()
	text, err := yaml.Marshal(&o.Spec)
	require.NoError(t, err)
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	require.NoError(t, strict.Decode(&spec), o.Metadata.Name)
	return spec
}
