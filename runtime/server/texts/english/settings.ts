/** The settings page; what it calls each setting stands in the table of settings. */
export const SETTINGS = {
  tabs: { dhcp: 'DHCP' },
  search: {
    label: 'Search settings',
    placeholder: 'Port, time zone, backups…',
    button: 'Search',
  },
  /** What the search finds the forms by, beside the settings. */
  keywords: {
    cache: 'cache service address catalog images withcache.url',
    release: 'netboot release repository tag live system boot.release_repo boot.release_tag',
    backup: 'backup schedule interval retention daily weekly manual',
    dhcp: 'dhcp pxe tftp network boot options 60 66 67 ipxe uefi bios',
  },
  empty: {
    title: 'No matching settings',
    text: 'Remove a term or clear the search.',
    all: 'Show all settings',
  },
  saved: {
    upstream: 'Saved and in effect.',
    backup: 'Schedule saved. Takes effect within a minute.',
    config: 'Saved in the configuration file and in effect.',
    restart: 'Saved in the configuration file. Takes effect after a restart.',
    unchanged: 'No setting was changed.',
  },
  refused: 'Nothing was saved. What is wrong:',
  problems: 'Some of the configuration is invalid:',
  backup: {
    title: 'Backup schedule',
    cadence: 'Back up automatically',
    retentionHint: 'Older ones are removed after each backup.',
    button: 'Save schedule',
    link: 'All backups',
  },
  cache: {
    title: 'Cache service',
    images: { one: '1 image', other: '{count} images' },
    unavailable: 'unavailable',
    text: 'It holds the images. Its catalog is read at start and every minute.',
    address: 'Address of the cache service',
    button: 'Save address',
    read: 'Catalog read',
    never: 'never',
    error: 'Error',
    skipped: 'Skipped',
    skippedEntry: '{name}: {reason}',
    more: 'and {count} more',
    refresh: 'Read the catalog now',
  },
  release: {
    title: 'Netboot release',
    text: 'Live systems are fetched from this release on the Netboot page.',
    link: 'Netboot',
    repository: 'Repository',
    tag: 'Release',
    tagHint: 'A tag such as v1.4.0, or latest.',
    button: 'Save release',
  },
  upstreamHint: 'Leave empty to use the configured value.',
  upstreamEnvironment: 'Set by the environment variable {variable}.',
  values: {
    /** For numbers with a unit: `30 minutes`. */
    locale: 'en',
    on: 'On',
    off: 'Off',
    never: 'Never',
    none: 'none',
  },
  /** What may be written into a field. */
  fields: {
    number: '{least} to {most}.',
    zero: '0: {meaning}.',
    duration: 'Such as 30 s, 5 min, 24 h or 7 days; or never.',
    longDuration: 'At least {least}, such as 24 h or 7 days; or never.',
    size: 'Such as 500 MB or 10 GiB.',
    text: 'Such as {example}.',
    list: 'One per line, such as {example}.',
    secret: {
      set: 'Set, not shown',
      unset: 'Not set',
      hint: 'Type a new value to replace it. It is never shown.',
      options: 'As JSON, such as {"bucket": "backups"}. Type all of them to replace them.',
    },
  },
  save: {
    button: 'Save changes',
    file: 'Changes are written to {path}.',
    files: 'Changes are written to the file that holds the setting, else to {path}.',
  },
  row: {
    pending: 'Changed. Takes effect after a restart.',
    effect: {
      restart: 'Takes effect after a restart.',
      restartCache: 'Takes effect after a restart of flasher-cache.',
      reloadCache: 'Takes effect when flasher-cache is reloaded.',
    },
    publicPath:
      'The public address has the path {path}: boot scripts and boot files are below it, pages are not. Open pages at the root of a host name.',
    unset: 'not set',
    secret: 'set, not shown',
    /** Where the card is that changes it. */
    card: 'Change it above',
    /** Buttons; the name of the setting is only read out. */
    resetLabel: '{word}: {setting}',
    reset: 'Use default',
    remove: 'Remove',
    origin: {
      page: 'Saved on this page; override with {variable}. Default: {default}.',
      file: 'Set in {path}; override with {variable}. Default: {default}.',
      default: 'Default: {default}. Override with {variable} or a file.',
    },
    account: 'account page',
    locked: {
      environment: 'Locked: set by the environment variable {variable}. Change it there.',
      kept: 'Locked: it decides who may log in, which program the server runs, or which folders it serves. Change it in the configuration file.',
      password: 'Locked: change the password on the {account}, or in the configuration file.',
      file: 'Locked: set in {path}, which the server may not write. Change it there.',
      files: 'Locked: the server may write none of its configuration files ({paths}).',
      noFile: 'Locked: no configuration file is read.',
    },
  },
  dhcp: {
    title: 'DHCP and network boot',
    server: 'TFTP server (option 66)',
    bios: 'Boot file for BIOS (67)',
    uefi: 'Boot file for UEFI, x86-64 (7, 9)',
    arm: 'Boot file for UEFI, arm64 (11)',
    http: 'UEFI HTTP boot, x86-64 (16; 60 = HTTPClient)',
    httpArm: 'UEFI HTTP boot, arm64 (19; 60 = HTTPClient)',
    loaders: {
      label: 'What UEFI machines load',
      grub: 'Signed GRUB, also with Secure Boot',
      ipxe: 'iPXE, without Secure Boot',
    },
    script: 'iPXE script',
    recipe: '{title}: {place}',
    /** By the DHCP server: its name, the file or menu that the block belongs to, and a note. */
    recipes: {
      dnsmasq: {
        title: 'dnsmasq',
        where: '/etc/dnsmasq.d/flasher.conf',
        note: 'For a dnsmasq that assigns the addresses. Its own TFTP daemon can serve the files.',
      },
      'dnsmasq-proxy': {
        title: 'dnsmasq, beside another DHCP server',
        where: '/etc/dnsmasq.d/flasher.conf',
        note: 'Assigns no addresses and only adds what to boot. It must be in the same network.',
      },
      kea: {
        title: 'Kea',
        where: '/etc/kea/kea-dhcp4.conf',
        note: 'Add the client classes to your configuration; the subnet is only an example.',
      },
      isc: {
        title: 'ISC dhcpd',
        where: '/etc/dhcp/dhcpd.conf',
        note: 'Insert it before the subnets.',
      },
      opnsense: {
        title: 'OPNsense',
        where: 'Services: ISC DHCPv4: (your network): Network Booting',
        note: 'If its DHCP server is Kea or Dnsmasq, use their blocks above.',
      },
      mikrotik: {
        title: 'MikroTik RouterOS 7',
        where: 'a terminal of the router',
        note: 'The matchers require RouterOS 7.4 or newer. Replace defconf with the name of your DHCP server.',
      },
      unifi: {
        title: 'UniFi Network',
        where: 'Settings: Networks: (your network): DHCP Service Management',
        note: 'It gives every machine the same answer: use the iPXE of a release, which finds the server itself, or dnsmasq as a proxy beside it.',
      },
    },
  },
  errors: {
    environment: 'it is set by the environment variable {variable}',
    stale: 'Changed meanwhile, to: {value}. Save again to replace that.',
    nothing: 'the default',
    lockedOut: 'Add {host}: it is the name by which you use this page.',
    lockedOutByUrl:
      'Add {host} to the allowed host names first: it is the name by which you use this page.',
  },
} as const
