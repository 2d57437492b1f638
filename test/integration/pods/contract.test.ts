import { machineSpec } from '#test/compute/builders.ts';

import { machineProviderContract } from '../machine-provider-contract.ts';
import { KUBERNETES } from '../proxies.ts';
import { openLink, startPods } from './fixture.ts';

/** Each specification is of a Proxy of its own: a Pod whose owner does not exist would be collected by the cluster. */
const OWNERS = 18;

machineProviderContract('Kubernetes', async () => {
  const pods = await startPods();
  const link = openLink('provision');
  const owners = await Promise.all(Array.from({ length: OWNERS }, () => pods.owner()));
  return {
    provider: pods.provider('prod', link),
    installation: 'prod',
    stranger: { provider: pods.provider('staging'), installation: 'staging' },
    zone: pods.namespace,
    spec: (installation, changes) => {
      const ref = owners.pop();
      if (!ref) throw new Error('more owners are needed');
      return machineSpec(installation, { ref, kubernetes: KUBERNETES.kubernetes, ...changes });
    },
    loseNextCreateReply: () => link.loseNext('POST', /\/pods$/u),
    leaveBehind: () => undefined,
    failNextGet: () => link.answerNext('GET', /\/pods\//u, 503),
    stop: () => pods.stop(),
  };
});
