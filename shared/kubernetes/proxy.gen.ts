/**
 * Generated from crds/proxy.yaml by `npm run generate`. Do not edit.
 *
 * A field with a default is there whenever the object was read from an API server that has this very CRD; it is optional
 * here because a manifest may leave it out, and a cluster may still have an older CRD.
 */

export const PROXY_RESOURCE = {
  group: 'crawl.example.com',
  version: 'v1alpha1',
  kind: 'Proxy',
  plural: 'proxies',
} as const;

/**
 * An egress proxy that crawlers lease: a machine that is created and replaced for you (gcp, kubernetes), or one that exists already (External).
 */
export interface Proxy {
  readonly apiVersion: 'crawl.example.com/v1alpha1';
  readonly kind: 'Proxy';
  readonly metadata: ProxyMetadata;
  readonly spec: ProxySpec;
  readonly status?: ProxyStatus;
}
/**
 * The part of metav1.ObjectMeta that is used here, as the API server returns it.
 */
export interface ProxyMetadata {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  /**
   * RFC 3339.
   */
  readonly creationTimestamp: string;
  /**
   * RFC 3339; present once deletion was asked for.
   */
  readonly deletionTimestamp?: string;
  readonly labels?: {
    readonly [k: string]: string;
  };
  readonly annotations?: {
    readonly [k: string]: string;
  };
  readonly finalizers?: readonly string[];
}
/**
 * The wanted state.
 */
export interface ProxySpec {
  /**
   * Who runs the machine: gcp (a Compute Engine VM) or kubernetes (a Pod beside this Proxy). Absent means External: the proxy exists already and endpoint says where. Immutable, its absence included.
   */
  readonly provider?: 'gcp' | 'kubernetes';
  /**
   * The port on which a managed proxy listens; when absent, 3128, chosen by the controller. Handed to the machine as metadata proxy-port. A change replaces the machine. Forbidden for External.
   */
  readonly port?: number;
  /**
   * How many leases may run on this proxy at the same time. The default, 1, gives each crawler a proxy of its own. Lowering it ends no running lease.
   *
   * Default: `1`.
   */
  readonly maxLeases?: number;
  /**
   * True refuses new leases, while running ones go on and can be renewed. Nothing is replaced or deleted.
   *
   * Default: `false`.
   */
  readonly cordoned?: boolean;
  /**
   * A free text of yours; any change of it replaces the machine, and with it the address. Absent is the same as empty. Forbidden for External.
   */
  readonly revision?: string;
  /**
   * How long replacement and deletion wait for running leases to end. 0 ends them at once.
   *
   * Default: `300`.
   */
  readonly drainTimeoutSeconds?: number;
  readonly cloudInit?: ProxySpecCloudInit;
  readonly credentialsSecretRef?: ProxySpecCredentialsSecretRef;
  readonly endpoint?: ProxySpecEndpoint;
  readonly gcp?: ProxySpecGcp;
  readonly kubernetes?: ProxySpecKubernetes;
  readonly healthCheck?: ProxySpecHealthCheck;
  readonly updateStrategy?: ProxySpecUpdateStrategy;
}
/**
 * User-data for cloud-init on the machine, written inline or in a Secret (exactly one of them). It installs and configures the proxy software. A Pod finds it as the file /etc/egress-proxies/user-data. A change, of the Secret's content too, replaces the machine. Forbidden for External.
 */
export interface ProxySpecCloudInit {
  /**
   * The user-data itself, at most 256 KiB (the limit of Compute Engine's metadata). Everyone who may read this Proxy can read it: credentials belong in credentialsSecretRef.
   */
  readonly inline?: string;
  readonly secretRef?: ProxySpecCloudInitSecretRef;
}
/**
 * A Secret in the Proxy's namespace, which must carry the label crawl.example.com/cloud-init=true.
 */
export interface ProxySpecCloudInitSecretRef {
  /**
   * The name of the Secret.
   */
  readonly name: string;
  /**
   * The key in the Secret's data that holds the user-data.
   *
   * Default: `"user-data"`.
   */
  readonly key?: string;
}
/**
 * A Secret in the Proxy's namespace with the keys username and password, which clients present to the proxy (Basic auth). It must carry the label crawl.example.com/credentials=true. Handed to a gcp machine as metadata proxy-username and proxy-password, to a Pod as files of these names in /etc/egress-proxies, and to crawlers with each lease.
 */
export interface ProxySpecCredentialsSecretRef {
  /**
   * The name of the Secret.
   */
  readonly name: string;
}
/**
 * Where an External proxy listens. Required when provider is absent, forbidden otherwise. An edit takes the old endpoint out of use at once; the new one is leased when it is healthy.
 */
export interface ProxySpecEndpoint {
  /**
   * A host name in lower case, an IPv4 address, or an IPv6 address without brackets. Loopback, link-local and private addresses need the operator's consent.
   */
  readonly host: string;
  /**
   * The port on which the proxy listens.
   */
  readonly port: number;
  /**
   * How clients speak to the proxy itself: http, or https for a proxy that is reached over TLS. It says nothing about the targets.
   *
   * Default: `"http"`.
   */
  readonly scheme?: 'http' | 'https';
}
/**
 * The Compute Engine VM. Required with provider gcp, forbidden otherwise.
 */
export interface ProxySpecGcp {
  /**
   * The allowed zones in order of preference; the next one is tried when one has no capacity. A running machine is not moved by a change here.
   *
   * Items: A zone, such as europe-west1-b.
   */
  readonly zones: readonly string[];
  /**
   * The machine type, such as e2-micro. A change replaces the machine.
   */
  readonly machineType: string;
  /**
   * The boot image or image family, as projects/PROJECT/global/images/[family/]NAME. It must contain cloud-init if cloudInit is used (Ubuntu's images do, Debian's do not). A change replaces the machine; a new image in the family does not.
   */
  readonly image: string;
  /**
   * The subnetwork of the machine: a name, looked up in the region of its zone, or projects/PROJECT/regions/REGION/subnetworks/NAME. A change replaces the machine.
   *
   * Default: `"default"`.
   */
  readonly subnetwork?: string;
  /**
   * Ephemeral: the machine has a public address of its own, by which it is reached and seen by targets. None: it is reached by its internal address and leaves through the network's NAT. A change replaces the machine.
   *
   * Default: `"Ephemeral"`.
   */
  readonly externalIP?: 'Ephemeral' | 'None';
  /**
   * Standard, or Spot: cheaper, but Compute Engine may stop it at any time; it is then replaced. A change replaces the machine.
   *
   * Default: `"Standard"`.
   */
  readonly provisioningModel?: 'Standard' | 'Spot';
}
/**
 * The Pod. Required with provider kubernetes, forbidden otherwise.
 */
export interface ProxySpecKubernetes {
  /**
   * The container image of the proxy. A change replaces the Pod.
   */
  readonly image: string;
  /**
   * Arguments of the container. A change replaces the Pod.
   *
   * Items: One argument.
   */
  readonly args?: readonly string[];
  readonly resources?: ProxySpecKubernetesResources;
  /**
   * Labels that a node must have to run the Pod. A change replaces the Pod.
   */
  readonly nodeSelector?: {
    /**
     * The wanted value of the label.
     */
    readonly [k: string]: string;
  };
  /**
   * Taints of nodes that the Pod puts up with. A change replaces the Pod.
   */
  readonly tolerations?: readonly ProxySpecKubernetesToleration[];
}
/**
 * What the container asks for and may use at most. A change replaces the Pod.
 */
export interface ProxySpecKubernetesResources {
  /**
   * What is set aside for the container, by resource name (cpu, memory).
   */
  readonly requests?: {
    /**
     * An amount, such as 100m or 128Mi.
     */
    readonly [k: string]: number | string;
  };
  /**
   * What the container may use at most, by resource name (cpu, memory).
   */
  readonly limits?: {
    /**
     * An amount, such as 500m or 256Mi.
     */
    readonly [k: string]: number | string;
  };
}
/**
 * One toleration, as in a Pod.
 */
export interface ProxySpecKubernetesToleration {
  /**
   * The key of the taint; empty, with operator Exists, means every taint.
   */
  readonly key?: string;
  /**
   * Equal compares the value, Exists does not.
   */
  readonly operator?: 'Equal' | 'Exists';
  /**
   * The value of the taint, for operator Equal.
   */
  readonly value?: string;
  /**
   * The effect of the taint; absent means each of them.
   */
  readonly effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
  /**
   * How long a NoExecute taint is put up with; absent means for ever.
   */
  readonly tolerationSeconds?: number;
}
/**
 * How the proxy is probed. Probes go through it, as a crawler would.
 *
 * Default: `{}`.
 */
export interface ProxySpecHealthCheck {
  /**
   * Time between two probes.
   *
   * Default: `60`.
   */
  readonly intervalSeconds?: number;
  /**
   * How long one probe may take in all.
   *
   * Default: `5`.
   */
  readonly timeoutSeconds?: number;
  /**
   * How many failures in a row make a healthy proxy unhealthy.
   *
   * Default: `3`.
   */
  readonly failureThreshold?: number;
  /**
   * How many successes in a row make a proxy healthy.
   *
   * Default: `1`.
   */
  readonly successThreshold?: number;
  /**
   * A page that must be reachable through the proxy as well, http or https. Empty: only the operator's own targets are probed.
   *
   * Default: `""`.
   */
  readonly url?: string;
}
/**
 * How a machine is replaced. Without meaning for External.
 *
 * Default: `{}`.
 */
export interface ProxySpecUpdateStrategy {
  /**
   * RollingUpdate: create the new machine, wait until it is healthy, then drain and delete the old one. Recreate: drain and delete the old one first, where the quota has no room for two.
   *
   * Default: `"RollingUpdate"`.
   */
  readonly type?: 'RollingUpdate' | 'Recreate';
}
/**
 * The state that was last observed. Written by the controller only.
 */
export interface ProxyStatus {
  /**
   * The generation whose spec was judged; the conditions speak about it.
   */
  readonly observedGeneration?: number;
  readonly observed?: ProxyStatusObserved;
  /**
   * The installation that looks after this Proxy; every other one leaves it alone.
   */
  readonly installation?: string;
  /**
   * The provider in words, which is External when spec.provider is absent.
   */
  readonly provider?: 'gcp' | 'kubernetes' | 'External';
  /**
   * Where crawlers connect, a name or an address. Absent when there is no usable endpoint.
   */
  readonly host?: string;
  /**
   * The host once more, when it is an address.
   */
  readonly ip?: string;
  /**
   * The port on which crawlers connect.
   */
  readonly port?: number;
  /**
   * How clients speak to the proxy itself.
   */
  readonly scheme?: 'http' | 'https';
  /**
   * The zone in which the machine runs.
   */
  readonly zone?: string;
  /**
   * The machine that serves, such as gce://project/zone/name.
   */
  readonly providerID?: string;
  /**
   * The address that targets saw at the last successful probe.
   */
  readonly exitAddress?: string;
  readonly replacement?: ProxyStatusReplacement;
  /**
   * Provisioned: the machine of this generation exists. Healthy: the endpoint answers probes. Ready: this generation has converged and its endpoint is healthy. Stalled: nothing will change until a person acts.
   */
  readonly conditions?: readonly ProxyStatusCondition[];
}
/**
 * What has been dealt with, whether or not it has converged.
 */
export interface ProxyStatusObserved {
  /**
   * The generation that was dealt with.
   */
  readonly generation?: number;
  /**
   * A hash of the labels that were dealt with.
   */
  readonly labelsHash?: string;
  /**
   * The version of each referenced Secret that was dealt with, by its name.
   */
  readonly secretVersions?: {
    /**
     * The version; empty when there was no such Secret.
     */
    readonly [k: string]: string;
  };
}
/**
 * The replacement in progress. Absent when there is none.
 */
export interface ProxyStatusReplacement {
  /**
   * The machine that will serve. Absent until it has been created.
   */
  readonly providerID?: string;
  /**
   * The zone of that machine.
   */
  readonly zone?: string;
  /**
   * Why the machine is replaced, in CamelCase.
   */
  readonly reason?: string;
  /**
   * When the replacement began.
   */
  readonly since?: string;
}
/**
 * One condition.
 */
export interface ProxyStatusCondition {
  /**
   * What the condition is about, in CamelCase.
   */
  readonly type: string;
  /**
   * Whether it holds.
   */
  readonly status: 'True' | 'False' | 'Unknown';
  /**
   * The generation that the condition was judged for.
   */
  readonly observedGeneration?: number;
  /**
   * When the status last changed.
   */
  readonly lastTransitionTime: string;
  /**
   * Why, in CamelCase, from a closed list.
   */
  readonly reason: string;
  /**
   * Why, for people; the provider's own words included.
   */
  readonly message: string;
}
