/** The contents of an image: Debian packages, npm packages, other programs, and the tools that built it. */

export interface DebianPackage {
  readonly name: string
  readonly version: string
  readonly architecture: string
}

export interface NpmPackage {
  readonly name: string
  readonly version: string
  readonly license: string
}

/** A list of Debian packages with its title. */
interface DebianList {
  readonly title: string
  /** Whether they are in the image, or only built it. */
  readonly within: boolean
  readonly packages: readonly DebianPackage[]
}

/** A program that comes from no package. */
export interface Program {
  readonly name: string
  readonly version: string
  /** Whether it is in the image, or only built it. */
  readonly within: boolean
}

export interface Contents {
  readonly debian: readonly DebianList[]
  readonly npm: readonly NpmPackage[]
  readonly programs: readonly Program[]
}

/**
 * Renders `name version architecture` by line, in sections, for comparing two builds with `diff`.
 */
export function renderContents({ debian, npm, programs }: Contents): string {
  const lists = debian.map(({ title, packages }) =>
    section(
      `Debian packages ${title}`,
      packages.map(({ name, version, architecture }) => `${name} ${version} ${architecture}`),
    ),
  )
  const rest = [
    { title: 'npm packages in it', rows: npm },
    { title: 'Other programs in it', rows: programs.filter(({ within }) => within) },
    { title: 'Other programs that made it', rows: programs.filter(({ within }) => !within) },
  ].filter(({ rows }) => rows.length > 0)
  const others = rest.map(({ title, rows }) =>
    section(
      title,
      rows.map(({ name, version }) => `${name} ${version}`),
    ),
  )
  return [...lists, ...others].join('\n')
}

const section = (title: string, lines: readonly string[]) => `# ${title}\n${lines.join('\n')}\n`
