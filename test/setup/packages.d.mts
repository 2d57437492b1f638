/** As npm writes them in `os`, `cpu` and `libc`. */
export interface Platform {
  readonly os: string;
  readonly cpu: string;
  readonly libc: 'glibc' | 'musl';
}

/**
 * True when the text of node_modules/.package-lock.json has every package of the lockfile's text that this platform
 * needs, in its version, and no other; false also when one of them is no JSON.
 */
export function samePackages(lockfile: string, installed: string, platform: Platform): boolean;
