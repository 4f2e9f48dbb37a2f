/** Current line: renders the reference of all settings as Markdown, from their table. */
import type { Entry } from '#kit/terminal/command/rules/command.ts'
import {
  COMMAND_ENVIRONMENT,
  LIVE_ENVIRONMENT,
  ORDER_ENVIRONMENT,
  SERVER_ENVIRONMENT,
  WIZARD_ENVIRONMENT,
} from '#kit/terminal/command/rules/environment.ts'
import { variablesOf, type Setting } from '#kit/config/rules/setting.ts'
import { SECTIONS } from '#kit/config/rules/setting-sections.ts'
import { renderFallback } from '#kit/config/rules/shown-setting.ts'
import { SETTINGS } from './settings.ts'

/** A section of the table without words here does not compile. */
const ABOUT: Readonly<Record<keyof typeof SETTINGS, string>> = SECTIONS

const HEAD = `# Settings

Made by \`flasher-web config reference\`; do not edit. How files and variables work together is in
[server.md](server.md).

In a file, a key stands in its section:

\`\`\`toml
[server]
port = 8080
\`\`\`

Every key can be said by an environment variable as well, which counts more; an empty one counts as
none. Lists are written with commas there. Keys marked ↻ count from the next start on, all others as
soon as the configuration is read again (\`SIGHUP\`, \`systemctl reload flasher-web\`, or an edit on the
settings page). Keys marked 🔒 are never shown nor logged. What the wizard and the commands read is
under [Other variables](#other-variables).
`

export function renderReference(): string {
  const sections = Object.entries(SETTINGS).map(([section, keys]) => {
    const rows = Object.entries(keys).map(([key, row]) => renderRow(section, key, row))
    const about = new Map(Object.entries(ABOUT)).get(section) ?? ''
    return [`## \`[${section}]\``, '', about, '', ...rows, ''].join('\n')
  })
  return `${HEAD}\n${sections.join('\n')}\n${renderVariables()}`
}

const VARIABLES: readonly (readonly [string, string, readonly Entry[]])[] = [
  [
    'Server programs',
    'Read by `flasher-web` and `flasher-cache`; the variables for proxies, authorities and registries, listed below, count for them as well.',
    SERVER_ENVIRONMENT,
  ],
  ['Flashing by a server', 'Read by `flasher-web flash`.', ORDER_ENVIRONMENT],
  ['Commands', 'Read by `flasher`, the wizard included.', COMMAND_ENVIRONMENT],
  ['Wizard', 'Read by the wizard alone.', WIZARD_ENVIRONMENT],
  [
    'Live system',
    'Set by the live system for the wizard, from its kernel command line, as are `FLASHER_PXE_TOKEN` and `FLASHER_DEFAULT_CATALOG`.',
    LIVE_ENVIRONMENT,
  ],
]

function renderVariables(): string {
  const groups = VARIABLES.map(([title, about, entries]) => {
    const rows = entries.map(([names, meaning]) => {
      const quoted = names.split(', ').map((name) => `\`${name}\``)
      return `- **${quoted.join(', ')}** ${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`
    })
    return [`### ${title}`, '', about, '', ...rows, ''].join('\n')
  })
  return ['## Other variables', '', 'These have no key in a file.', '', ...groups].join('\n')
}

function renderRow(section: string, key: string, row: Setting<unknown>): string {
  const marks = `${row.reload === 'restart' ? ' ↻' : ''}${row.isSecret ? ' 🔒' : ''}`
  const variables = variablesOf(section, key, row).map((name) => `\`${name}\``)
  const facts = [`Must be ${row.wants}`, `default: ${renderFallback(row)}`, variables.join(' or ')]
  return `- **\`${key}\`**${marks} ${row.help}\n  ${facts.join('; ')}.`
}
