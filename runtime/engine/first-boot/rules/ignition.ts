/** Renders a filled template as an Ignition configuration, as far as Ignition can do what it says. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { listFiles, type FilledTemplate } from './template.ts'

/** For Fedora CoreOS 32, Flatcar 3139, and newer. */
const VERSION = '3.3.0'
const SCRIPT = '/etc/flasher/first-boot.sh'
const STAMP = '/var/lib/flasher-first-boot'

/** Refused in words: what Ignition cannot do would silently be missing. */
export function renderIgnition(filled: FilledTemplate): Result<string, string> {
  const { hostname, users, packages, commands, network } = filled
  if (packages.length > 0) return refuse('it installs packages, which Ignition cannot')
  if (network !== null)
    return refuse('its network configuration is for cloud-init, not for Ignition')
  const own = [
    ...(hostname === null ? [] : [renderFile('/etc/hostname', 0o644, `${hostname}\n`)]),
    ...users.flatMap(({ name, sudo }) =>
      sudo ? [renderFile(`/etc/sudoers.d/${name}`, 0o440, `${name} ALL=(ALL) NOPASSWD:ALL\n`)] : [],
    ),
    ...(commands.length === 0 ? [] : [renderFile(SCRIPT, 0o700, renderScript(commands))]),
  ]
  const given = listFiles(filled)
  const twice = given.find(({ path }) => own.some((file) => file.path === path))
  // Ignition refuses a path that occurs twice, and the machine then never boots.
  if (twice !== undefined)
    return refuse(`its file ${twice.path} is also made from its other fields`)
  const files = [
    ...own,
    ...given.map(({ path, mode, text }) => renderFile(path, Number.parseInt(mode, 8), text)),
  ]
  const config = {
    ignition: { version: VERSION },
    ...(users.length === 0
      ? {}
      : {
          passwd: {
            users: users.map(({ name, ssh_keys, password_hash }) => ({
              name,
              sshAuthorizedKeys: ssh_keys,
              ...(password_hash === undefined ? {} : { passwordHash: password_hash }),
            })),
          },
        }),
    ...(files.length === 0 ? {} : { storage: { files } }),
    ...(commands.length === 0
      ? {}
      : {
          systemd: {
            units: [{ name: 'flasher-first-boot.service', enabled: true, contents: UNIT }],
          },
        }),
  }
  return accept(`${JSON.stringify(config, null, 2)}\n`)
}

const renderFile = (path: string, mode: number, text: string) => ({
  path,
  mode,
  overwrite: true,
  contents: { source: `data:,${encodeURIComponent(text)}` },
})

const renderScript = (commands: readonly string[]) => `#!/bin/sh\n${commands.join('\n')}\n`

const UNIT = `[Unit]
Description=Commands of the first boot
ConditionPathExists=!${STAMP}
Wants=network-online.target
After=network-online.target
[Service]
Type=oneshot
ExecStart=${SCRIPT}
ExecStartPost=/usr/bin/touch ${STAMP}
[Install]
WantedBy=multi-user.target
`
