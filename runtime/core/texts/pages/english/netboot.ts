/** The page of the live system, and of its installation, in English. */
export const NETBOOT = {
  title: 'Netboot',
  tabs: {
    systems: 'Live systems',
    install: 'Install',
    tftp: 'TFTP daemon',
    activity: 'Activity',
  },
  activity: { title: 'Activity', all: 'All' },
  uploaded: { one: 'The file was uploaded.', other: '{count} files were uploaded.' },
  downloads: {
    title: 'Downloads',
    failed: 'Release {tag}: {error}',
    running: 'Release {tag} {step}',
    share: '{state}, {percent} %',
  },
  systems: {
    title: 'Live systems',
    none: 'No live system is installed. Machines boot one from the network to be flashed; until then they can only boot their own disks.',
    incomplete:
      'A live system is a kernel (.vmlinuz), an initrd and a squashfs of the same version. None is complete yet.',
    missing: 'Missing: {names}',
    active: 'active',
    isIncomplete: 'incomplete',
    notUsed: 'not used',
    use: 'Use {version}',
    goBack: 'Go back to {version}',
  },
  files: {
    caption: 'Files in the boot directory',
    file: 'File',
    size: 'Size',
    added: 'Added',
  },
  install: {
    title: 'Install a live system',
    fetch: {
      title: 'Fetch a release',
      site: 'Release site',
      repository: 'Repository',
      tag: 'Release',
      tagHint: 'A tag such as {tag}, or {latest}.',
      button: 'Fetch release',
      hint: 'The files are verified before machines boot them.',
      setBy: 'Set by {variable}.',
    },
    upload: {
      title: 'Upload the files',
      label: 'Kernel, initrd and squashfs',
      hint: 'Named as in a release: {name}. Add the {sums} file, and the others are checked against it.',
      button: 'Upload',
      unscripted:
        'Uploading here needs JavaScript. Without it, copy the files into the boot directory of the server.',
    },
    build: {
      title: 'Build it',
      text: 'In a checkout of flasher on this host, as root:',
      label: 'Commands that build a live system',
      hint: 'Files copied into {folder} are used once all three are there.',
    },
  },
  tftp: {
    title: 'TFTP daemon',
    active: 'active',
    inactive: 'inactive',
    unchecked: 'not checked yet',
    note: 'This server only checks it; the service manager of its host starts and stops it. The host that is checked: {setting}.',
    help: 'BIOS machines and most UEFI firmware load iPXE by TFTP. These commands set it up on a Debian host; UEFI HTTP Boot needs none of it.',
    label: 'Commands that set up a TFTP daemon',
  },
} as const
