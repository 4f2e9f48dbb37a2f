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
export interface DebianList {
  readonly title: string
  /** Whether they are in the image, or only made it. */
  readonly within: boolean
  readonly packages: readonly DebianPackage[]
}

export interface Contents {
  readonly debian: readonly DebianList[]
  readonly npm: readonly NpmPackage[]
}

/** `name version architecture` by line, in sections: two builds differ where this differs. */
export function renderContents({ debian, npm }: Contents): string {
  const lists = debian.map(({ title, packages }) =>
    section(
      `Debian packages ${title}`,
      packages.map(({ name, version, architecture }) => `${name} ${version} ${architecture}`),
    ),
  )
  const programs = npm.map(({ name, version }) => `${name} ${version}`)
  return [...lists, ...(npm.length === 0 ? [] : [section('npm packages in it', programs)])].join(
    '\n',
  )
}

const section = (title: string, lines: readonly string[]) => `# ${title}\n${lines.join('\n')}\n`
