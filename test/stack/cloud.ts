/** What lies outside the product: the provider's API, somebody's proxy, a page, and an authority for TLS. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { Log } from '#shared/app/log.ts';
import { joinRanges, makeAddressAllocator } from '#test/compute/addresses.ts';
import { startForwardProxy, type ForwardProxy } from '#test/compute/forward-proxy.ts';
import { startComputeStandIn, type ComputeStandIn } from '#test/compute/stand-in.ts';
import { makeAuthority } from '#test/services/authority.ts';
import type { LoopbackRange } from '#test/services/ports.ts';

import { startTarget, type Target } from './target.ts';

export interface Cloud {
  readonly compute: ComputeStandIn;
  /** The proxy that the External sample names. */
  readonly externalProxy: ForwardProxy;
  readonly target: Target;
  /** PEM file of the authority behind `echoFront`. */
  readonly caFile: string;
  /** Where `echo` is reached over TLS. */
  readonly echoFront: { readonly host: string; readonly certPem: string; readonly keyPem: string };
  stop(): Promise<void>;
}

/** The first addresses of a stack's first range; machines have the others. */
const OWN = { echo: 1, target: 2, externalProxy: 3, firstMachine: 10 } as const;

/** A machine answers a second after it runs: enough to see that "running" is not "listening". */
const BOOT_MS = 1000;

export const startCloud = async (
  projectId: string,
  runDir: string,
  ranges: readonly LoopbackRange[],
  log: Log,
): Promise<Cloud> => {
  await using owner = new AsyncDisposableStack();
  const range = joinRanges(ranges);
  const authority = await makeAuthority('Local stack');
  const caFile = join(runDir, 'authority.pem');
  await writeFile(caFile, authority.caPem);
  const echoHost = range.address(OWN.echo);
  const target = await startTarget(range.address(OWN.target));
  owner.defer(() => target.stop());
  const externalProxy = await startForwardProxy({ host: range.address(OWN.externalProxy), port: 3128 });
  owner.defer(() => externalProxy.stop());
  const addresses = makeAddressAllocator(range, OWN.firstMachine, range.size);
  const compute = await startComputeStandIn({ projectId, addresses, bootMs: BOOT_MS, log });
  owner.defer(() => compute.stop());
  const echoFront = { host: echoHost, ...(await authority.issue(echoHost)) };
  const kept = owner.move();
  return { compute, externalProxy, target, caFile, echoFront, stop: () => kept.disposeAsync() };
};
