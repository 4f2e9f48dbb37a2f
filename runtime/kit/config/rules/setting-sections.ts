/** The sections of the configuration files: all of our server programs read the same files, each its own sections. */

/** What each section is about, for the reference, in the order of the table of the current line. */
export const SECTIONS = {
  admin: 'Who may use the pages. With neither key a password is made at the first start.',
  people: 'People who log in with a name ([people.md](people.md)).',
  oidc: 'Logging in with an OpenID provider ([people.md](people.md#logging-in-with-a-provider)).',
  server: 'Where the server listens, and whom it believes.',
  paths: 'Where things lie.',
  withcache: 'The cache service, which holds the images.',
  sources: 'Where else machines fetch images.',
  s3: 'What opens the buckets of `s3://` images ([cache.md](cache.md#images-in-a-bucket)).',
  peers:
    'Whether machines of a site hand images on to each other ([cache.md](cache.md#machines-that-hand-images-on)).',
  cache: 'Read by `flasher-cache`, from the same files.',
  boot: 'Which release of the live environment machines boot.',
  releases: 'Where releases are.',
  flash: 'How machines flash themselves.',
  pxe: 'What machines are offered.',
  power: 'How the server turns machines on and off ([power.md](power.md)).',
  proof:
    'Whether the server waits for the first boot of what was flashed ([first-boot.md](first-boot.md#has-it-booted)).',
  notify: 'Notifications ([notifications.md](notifications.md)).',
  netboot: 'What else network boot needs.',
  database: 'What several servers share ([several-servers.md](several-servers.md)).',
  backup: 'Backups; the settings page saves the first three.',
  retention: 'What is kept, and for how long.',
  tuning: 'Limits.',
  display: 'How pages show things.',
  metrics: 'For monitoring.',
  log: 'What is said on standard error.',
  /** The earlier line alone has it. */
  workflow: 'The runs of `cijoe-online`.',
} as const

/**
 * Returns the keys that the same files hold for other programs, `section.*` for a section: all sections
 * but those that this program reads itself. Whoever misspells a key of `own` gets a warning; a key of another
 * program is no mistake.
 */
export const listForeignSections = (own: readonly string[]): Readonly<Record<string, null>> =>
  Object.fromEntries(
    Object.keys(SECTIONS)
      .filter((name) => !own.includes(name))
      .map((name) => [`${name}.*`, null]),
  )
