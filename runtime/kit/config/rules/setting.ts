/** One key of the configuration: what it is called, its type, its default, and the field that asks for it. */
import type { ZodType } from 'zod'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** Words for single values, by the value as text: of a choice all of them, else only those that need one. */
type ChoiceLabels = Readonly<Record<string, string>>

/** Each has a control of its own on the settings page. */
export type Field =
  | { readonly as: 'toggle' }
  | { readonly as: 'choice'; readonly names: readonly string[] }
  | { readonly as: 'number'; readonly least: number; readonly most: number }
  /** `least` in seconds. */
  | { readonly as: 'duration'; readonly least: number }
  | { readonly as: 'size' }
  | {
      readonly as: 'text'
      readonly example: string
      readonly keyboard?: 'url'
      /** What a browser offers while somebody types; other values are possible. */
      readonly suggest?: () => readonly string[]
    }
  /** Goes to the server and never back; a table of options has several rows. */
  | { readonly as: 'secret'; readonly rows: number }
  | { readonly as: 'list'; readonly example: string }

/** How a value is checked, and how it is written in TOML, a variable or a form. */
export interface Kind<T, Named extends ChoiceLabels = ChoiceLabels> {
  readonly schema: ZodType<T>
  /** What it must be, to follow "must be": `a whole number from 1 to 65535`. */
  readonly wants: string
  readonly field: Field
  readonly labels: Named
  /** The value of a text (a variable's, a form field's), still to be checked by the schema. */
  readonly fromText: (text: string) => unknown
  readonly toToml: (value: T) => TomlValue
  /** Absent: as in the text of a file. */
  readonly toField?: (value: T) => string
}

/** What configuration files hold of what TOML can. */
export type TomlValue =
  | string
  | number
  | boolean
  | readonly TomlValue[]
  | { readonly [key: string]: TomlValue }

/** The program that reads a setting; on the page of another one, that is said. */
type SettingProgram = 'flasher-web' | 'flasher-cache' | 'both'

export interface Setting<T, Named extends ChoiceLabels = ChoiceLabels> {
  /** What pages call it, in English. */
  readonly title: string
  /** The heading under which the settings page lists it; null: another page changes it. */
  readonly topic: SettingTopic | null
  /** The job under which the settings page shows it in front; null: behind "All settings". */
  readonly front: SettingJob | null
  readonly program: SettingProgram
  /** One sentence for the reference. */
  readonly help: string
  readonly fallback: T
  /** The fallback in words, where the value alone is not clear: `<state_dir>/boot`. */
  readonly fallbackWords: string | null
  /** A variable of its own beside `FLASHER_<SECTION>_<KEY>`. */
  readonly env: string | null
  /** Never shown, logged or sent to a browser. */
  readonly isSecret: boolean
  /** Changed in files alone: it decides who may log in, which program runs, or which folders are served (docs/decisions/0014). */
  readonly isKept: boolean
  /** The card of the settings page that saves it in the database (docs/decisions/0014), by its anchor. */
  readonly card: SettingJob | null
  readonly reload: 'live' | 'restart'
  readonly wants: string
  readonly field: Field
  readonly labels: Named
  /** Checks what a file holds; refused with what is wanted instead, in words. */
  readonly parse: (given: unknown) => Result<T, string>
  /** The value of a text; an empty text is no value and never gets here. */
  readonly fromText: (text: string) => unknown
  /** Null when `given` is not a value of this setting. */
  readonly toToml: (given: unknown) => TomlValue | null
  /** Empty when `given` is not a value of this setting. */
  readonly toField: (given: unknown) => string
}

interface SettingOptions<T, Named extends ChoiceLabels> {
  readonly title: string
  readonly topic: SettingTopic | null
  readonly front?: SettingJob
  readonly help: string
  readonly kind: Kind<T, Named>
  readonly fallback: NoInfer<T>
  readonly fallbackWords?: string
  readonly env?: string
  /** A change is in effect from the next start on. */
  readonly restart?: true
  readonly kept?: true
  /** It is in front there. */
  readonly card?: SettingJob
}

/** `settingOf('flasher-web')({ title: 'Port', … })`. */
export const settingOf =
  (program: SettingProgram) =>
  <T, Named extends ChoiceLabels>(options: SettingOptions<T, Named>): Setting<T, Named> => {
    const { kind, fallbackWords = null, env = null, restart, kept, card = null } = options
    const isSecret = kind.field.as === 'secret'
    const parse = (given: unknown): Result<T, string> => {
      const checked = kind.schema.safeParse(given)
      if (checked.success) return accept(checked.data)
      const [issue] = checked.error.issues
      return refuse(
        isSecret
          ? `must be ${kind.wants}`
          : `must be ${kind.wants}, not ${renderGiven(findCulprit(given, issue?.path[0]))}`,
      )
    }
    const toToml = (given: unknown): TomlValue | null => {
      const parsed = parse(given)
      return parsed.ok ? kind.toToml(parsed.value) : null
    }
    return {
      title: options.title,
      topic: options.topic,
      front: options.front ?? card,
      program,
      help: options.help,
      fallback: options.fallback,
      fallbackWords,
      env,
      isSecret,
      isKept: kept === true,
      card,
      reload: restart === true ? 'restart' : 'live',
      wants: kind.wants,
      field: kind.field,
      labels: kind.labels,
      parse,
      fromText: kind.fromText,
      toToml,
      toField(given) {
        const parsed = parse(given)
        if (!parsed.ok) return ''
        return kind.toField?.(parsed.value) ?? renderText(kind.toToml(parsed.value))
      },
    }
  }

/** Finds the entry of a list that is wrong; anything else is wrong as a whole. */
const findCulprit = (given: unknown, at: PropertyKey | undefined): unknown =>
  Array.isArray(given) && typeof at === 'number' ? given[at] : given

export type SettingsTable = Readonly<Record<string, Readonly<Record<string, Setting<unknown>>>>>

/** The values of a table: `settings.server.port`. */
export type SettingsOf<Table extends SettingsTable> = {
  readonly [Section in keyof Table]: {
    readonly [Key in keyof Table[Section]]: Table[Section][Key] extends Setting<infer Value>
      ? Value
      : never
  }
}

/** The one to name first: its own, then `FLASHER_<SECTION>_<KEY>`. */
export const variablesOf = (
  section: string,
  key: string,
  { env }: Setting<unknown>,
): readonly [string, ...string[]] => {
  const regular = `FLASHER_${section}_${key}`.toUpperCase()
  return env === null ? [regular] : [env, regular]
}

/** In the table's order. */
export const listSettings = (table: SettingsTable) =>
  Object.entries(table).flatMap(([section, keys]) =>
    Object.entries(keys).map(([key, row]) => ({ section, key, row })),
  )

/** By its dotted name, such as `server.port`; null when there is none. */
export function findNamed(table: SettingsTable, name: string): Setting<unknown> | null {
  const [section = '', key = ''] = name.split('.')
  return findSetting(table, section, key)
}

export const findSetting = (table: SettingsTable, section: string, key: string) =>
  Object.hasOwn(table, section) && Object.hasOwn(table[section] ?? {}, key)
    ? (table[section]?.[key] ?? null)
    : null

/** The same text gives the same value back. */
export function renderText(value: TomlValue): string {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.map(renderText).join(', ')
  if (typeof value !== 'object') return String(value)
  return Object.keys(value).length === 0 ? '' : JSON.stringify(value)
}

const MAX_SHOWN = 60

/** What somebody wrote instead, short and safe for a terminal. */
const CREDENTIALS = /\/\/[^/\s"]*@/g

function renderGiven(given: unknown): string {
  const text = JSON.stringify(given, (_, value) =>
    typeof value === 'bigint' ? String(value) : value,
  )
  // Credentials in an address are shown to be there, but not which.
  const safe = printable(text ?? typeof given).replace(CREDENTIALS, '//***@')
  return safe.length > MAX_SHOWN ? `${safe.slice(0, MAX_SHOWN)}…` : safe
}

/** Why people come to the settings page, by anchor. */
export const SETTING_JOBS = {
  addresses: 'Addresses and time',
  ramboot: 'Images',
  'netboot-release': 'Network boot',
  flashing: 'Flashing',
  power: 'Power',
  'backup-schedule': 'Backups',
  access: 'Logging in',
  notifications: 'Notifications',
} as const

export type SettingJob = keyof typeof SETTING_JOBS

/** "Configuration page" of the specification names the groups. */
export const SETTING_GROUPS = {
  identity: {
    title: 'Identity',
    topics: { login: 'Logging in', monitoring: 'Times, logs and monitoring' },
  },
  network: {
    title: 'Network',
    topics: {
      listening: 'Listening and HTTPS',
      proxy: 'Proxies and host names',
      upstream: 'Images and releases',
      buckets: 'Images in buckets',
      flashing: 'Flashing',
      power: 'Power',
      notifications: 'Notifications',
      boot: 'PXE and discovery',
      workflows: 'Workflows',
    },
  },
  storage: {
    title: 'Storage',
    topics: {
      folders: 'Folders',
      database: 'Several servers',
      backups: 'Backups',
      retention: 'History',
      limits: 'Limits',
      cache: 'Image cache on this server',
    },
  },
} as const

type Groups = typeof SETTING_GROUPS

type SettingTopic = {
  [Group in keyof Groups]: keyof Groups[Group]['topics']
}[keyof Groups]

// The sections of the configuration files: all of our server programs read the same files, each its own sections.

/** What each section is about, for the reference, in the order of the table of the current line. */
export const SECTIONS = {
  admin: 'The administrator password. Without either key, the first start makes one.',
  people: 'People who log in with a name ([people.md](people.md)).',
  oidc: 'Logging in with an OpenID provider ([people.md](people.md#logging-in-with-a-provider)).',
  server: 'Where the server listens, and what it trusts.',
  paths: 'Folders.',
  withcache: 'The cache service, which holds the images.',
  sources: 'Where else machines fetch images.',
  s3: 'Access to the buckets of `s3://` images ([cache.md](cache.md#images-in-a-bucket)).',
  cache: 'Read by `flasher-cache`, from the same files.',
  boot: 'Which release of the live environment machines boot.',
  releases: 'Where releases are.',
  flash: 'How machines flash themselves.',
  images: 'Which images machines may get.',
  pxe: 'Network boot and flashing.',
  power: 'How the server turns machines on and off ([power.md](power.md)).',
  proof: 'The first boot after a flash ([first-boot.md](first-boot.md#has-it-booted)).',
  notify: 'Notifications ([notifications.md](notifications.md)).',
  netboot: 'More on network boot.',
  dhcp: 'The proxy beside your DHCP server ([dhcp.md](dhcp.md#the-proxy)).',
  database: 'What servers share ([several-servers.md](several-servers.md)).',
  backup: 'Backups; the settings page saves the first three.',
  retention: 'What is kept, and for how long.',
  tuning: 'Limits.',
  display: 'Times on pages.',
  metrics: 'Monitoring.',
  log: 'What is logged on standard error.',
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
