/** What a test can see and do behind the API server's back. */

import type { ProxyMode } from '#test/compute/forward-proxy.ts';

import type { PodFault, PodFaults } from './faults.ts';

export interface PodView {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly address?: string;
  readonly port?: number;
  readonly listening: boolean;
  /** Names of the files that its Secret gives it. */
  readonly files: readonly string[];
  /** Requests that its proxy has taken. */
  readonly requests: number;
}

/** Pods are named by name. Calls throw RangeError for a Pod that does not run here. */
export interface KubeletControl {
  addFault(fault: PodFault): string;
  removeFault(id: string): boolean;
  clearFaults(): void;
  faults(): ReturnType<PodFaults['list']>;
  pods(): readonly PodView[];
  setReady(name: string, ready: boolean): Promise<void>;
  /** Phase Failed, its proxy ended; the address goes in the same update unless it is kept. */
  fail(name: string, why?: { reason?: string; message?: string; keepAddress?: boolean }): Promise<void>;
  setProxyMode(name: string, mode: ProxyMode): Promise<void>;
}
