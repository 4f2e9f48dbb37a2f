/** What the builder does, as data: a program, what it reads, and what it promises to write. */

/**
 * Paths in `argv` and `inputs` are relative to the checkout, where every program starts, or begin with
 * the name of a step's folder: `@squashfs/root.squashfs` is that file of the step `squashfs`, be it
 * another step or this one. `%apt` is a folder that all runs share, to speed a step up and decide
 * nothing. The executor puts the folders where it wants.
 */
export interface Step {
  /** Unique in a plan; names the folder `@name` that the step writes to. */
  readonly name: string
  /** What it makes, for people: `the root file system, compressed`. */
  readonly says: string
  /** `node` is the Node that runs the builder. What it says goes to the step's log. */
  readonly argv: readonly string[]
  /**
   * Whatever decides the outcome besides `argv` and `env`: files, folders, and what other steps made.
   * A TypeScript program among them stands for the files that it imports, too.
   */
  readonly inputs: readonly string[]
  /** Files and folders in the step's own folder that must be there when it has ended. */
  readonly makes: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Runs with the programs of the tools tree instead of the host's, so that their versions are ours. */
  readonly tools?: true
}

/** What is the same for all steps of a run. */
export interface BuildFacts {
  readonly version: string
  /** Seconds since 1970: the time of everything that we make (SOURCE_DATE_EPOCH). */
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
