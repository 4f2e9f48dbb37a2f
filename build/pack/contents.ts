/** What is in an image: packages of Debian's, of npm's, and which release of what made it. */

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

/** A list of Debian packages and where they are. */
interface DebianList {
  readonly title: string
  /** Whether they are in the image, or only made it. */
  readonly within: boolean
  readonly packages: readonly DebianPackage[]
}

/** What is no package of anybody's. */
export interface Program {
  readonly name: string
  readonly version: string
  /** Whether it is in the image, or only made it. */
  readonly within: boolean
}

export interface Contents {
  readonly debian: readonly DebianList[]
  readonly npm: readonly NpmPackage[]
  readonly programs: readonly Program[]
}

/** `name version architecture` by line, in sections: two builds differ where this differs. */
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
