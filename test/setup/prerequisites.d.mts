import type { Environment } from './locate.mjs';

export type Command = 'start' | 'test';

export interface Finding {
  readonly what: string;
  readonly why: string;
  /** Commands to type, one a line. */
  readonly fix: string;
  /** Set when the work goes on without it: what that means. */
  readonly optional?: string;
}

/** Compares version numbers part by part; false when `version` has no number. */
export function atLeast(version: string, wanted: readonly number[]): boolean;
export function checkPlatform(platform: string): readonly Finding[];
/** `npm` is what `npm --version` prints; empty when there is none. */
export function checkNode(node: string, npm: string): readonly Finding[];
export function checkJava(version: number | undefined): readonly Finding[];
export function checkGo(printedVersion: string): readonly Finding[];
export function checkTerraform(printedVersion: string, ci: boolean): readonly Finding[];
/** Looks for everything that the command needs, and changes nothing. */
export function findMissing(command: Command, env: Environment): readonly Finding[];
/** One message about all findings; empty when there are none. */
export function report(
  command: Command,
  findings: readonly Finding[],
): { readonly text: string; readonly fatal: boolean };
