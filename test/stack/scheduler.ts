/** Cloud Scheduler's part: one POST per job and minute, whether or not the last one has been answered. */

import type { Log } from '#shared/app/log.ts';
import { pause } from '#shared/app/wait.ts';

export interface Job {
  readonly name: string;
  readonly url: string;
  /** Time for one answer. */
  readonly attemptDeadlineSeconds: number;
}

export interface Scheduler {
  stop(): Promise<void>;
}

const PERIOD_MS = 60_000;

const fire = async (job: Job, log: Log, signal: AbortSignal): Promise<void> => {
  try {
    const answer = await fetch(job.url, {
      method: 'POST',
      headers: { 'x-cloudscheduler': 'true', 'x-cloudscheduler-jobname': job.name },
      signal: AbortSignal.any([signal, AbortSignal.timeout(job.attemptDeadlineSeconds * 1000)]),
    });
    await answer.arrayBuffer();
    if (!answer.ok) log.warning('scheduled job failed', { job: job.name, status: answer.status });
  } catch (error) {
    if (!signal.aborted) log.error(`scheduled job ${job.name} failed`, error);
  }
};

/** Fires every job now and then once a minute. */
export const startScheduler = (jobs: readonly Job[], log: Log): Scheduler => {
  const ended = new AbortController();
  const running = new Set<Promise<void>>();
  const tick = (): void => {
    for (const job of jobs) {
      const run = fire(job, log, ended.signal).finally(() => running.delete(run));
      running.add(run);
    }
  };
  const loop = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      tick();
      await pause(PERIOD_MS, ended.signal);
    }
  };
  const looping = loop();
  return {
    async stop() {
      ended.abort();
      await looping;
      await Promise.all(running);
    },
  };
};
