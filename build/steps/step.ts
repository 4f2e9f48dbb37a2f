/** A build step as data: a program, what it reads, and what it promises to write. */

/**
 * Paths in `argv` and `inputs` are relative to the checkout, where every program starts, or begin with
 * the name of a step's folder: `@squashfs/root.squashfs` is that file of the step `squashfs`, be it
 * another step or this one. `%apt` is a folder that all builds share; it makes a step faster and decides
 * nothing. The executor chooses where folders lie.
 */
export interface Step {
  /** Unique in a plan; names the folder `@name` that the step writes to. */
  readonly name: string
  /** What it makes, for people: `the root file system, compressed`. */
  readonly says: string
  /** `node` stands for the Node that runs the builder. Its output goes to the step's log. */
  readonly argv: readonly string[]
  /**
   * Everything that decides the outcome besides `argv` and `env`: files, folders, outcomes of other steps.
   * A TypeScript program includes the files that it imports.
   */
  readonly inputs: readonly string[]
  /** Files and folders that must exist in the step's own folder when it has ended. */
  readonly makes: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Runs with the programs of the tools tree instead of the host's, so that their versions are ours. */
  readonly tools?: true
}

/** What all steps of a build share. */
export interface BuildFacts {
  readonly version: string
  /** Seconds since 1970: the time of all files that we make (SOURCE_DATE_EPOCH). */
  readonly epoch: number
  /** How hard compressors try. */
  readonly level: Level
}

export const LEVELS = ['dev', 'release'] as const
export type Level = (typeof LEVELS)[number]

/** A step that runs a program of build/programs. */
export function programStep(
  program: string,
  args: readonly string[],
  step: Omit<Step, 'argv'>,
): Step {
  const file = `build/programs/${program}.ts`
  return { ...step, argv: ['node', file, ...args], inputs: [file, ...step.inputs] }
}
