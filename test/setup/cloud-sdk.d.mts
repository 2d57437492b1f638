import type { Environment } from './locate.mjs';

export type Emulator = 'firestore' | 'pubsub';

/** The SDK's root folder; undefined when there is no SDK. */
export function sdkRoot(env: Environment): string | undefined;
/** The path of an emulator's start program, whether it exists or not. */
export function emulatorProgram(root: string, name: Emulator): string;
export function missingEmulators(root: string): readonly Emulator[];
/** The command that installs these emulators into the SDK at `root`. */
export function installCommand(root: string, names: readonly Emulator[]): string;
/** The java that the emulators get: that of JAVA_HOME, else the first on the PATH. */
export function javaProgram(env: Environment): string | undefined;
/** The major version in what `java -version` prints. */
export function javaMajor(printed: string): number | undefined;
