export type Program = 'etcd' | 'kube-apiserver' | 'kube-controller-manager';
/** Absolute paths of the executables. */
export type Programs = Readonly<Record<Program, string>>;
export type Environment = Readonly<Record<string, string | undefined>>;

export type Location =
  | {
      readonly found: true;
      readonly from: 'KUBEBUILDER_ASSETS' | 'PATH' | 'cache';
      readonly programs: Programs;
      readonly notes: readonly string[];
    }
  | {
      readonly found: false;
      /** Where a build belongs, and the paths that its programs will have. */
      readonly directory: string;
      readonly programs: Programs;
      /** Why a place that was named is not used. */
      readonly notes: readonly string[];
    };

export const PROGRAMS: readonly Program[];
/** The folder of go.mod, absolute. */
export const SOURCES: string;
export function findOnPath(program: string, env: Environment): string | undefined;
/** The version of a module that the text of a go.mod requires; throws when it requires none. */
export function requiredVersion(goMod: string, module: string): string;
export function linkerFlags(goMod: string): string;
/** The name of one build: readable versions, then a digest of everything that goes into it. */
export function versionKey(goMod: string, otherSources: readonly string[], arch: string): string;
export function cacheRoot(env: Environment): string;
export function cacheDirectory(env: Environment): string;
/** A complete set of programs from one place (a mix of versions helps nobody), or where to build one. */
export function locateControlPlane(env: Environment): Location;
