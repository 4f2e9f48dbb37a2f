/** The page of the live system, and of its installation. */
export const NETBOOT = {
  tabs: { install: 'Install' },
  activity: { title: 'Activity', all: 'All netboot events' },
  uploaded: { one: 'The file was uploaded.', other: '{count} files were uploaded.' },
  downloads: {
    title: 'Downloads',
    failed: 'Release {tag}: {error}',
    earlier: 'Failed downloads',
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
  servers: {
    title: 'On all servers',
    every: { one: 'This server has it.', other: 'All {count} servers have it.' },
    some: 'Servers copy it from each other. Machines boot what a server has whole; it asks the one that leads for the rest.',
    states: { whole: 'here', copying: 'copying', troubled: 'missing' },
  },
  files: {
    caption: 'Files in the boot directory',
    file: 'File',
    size: 'Size',
    added: 'Added',
  },
  stick: {
    title: 'Make a USB stick',
    text: 'Save {page} and {archive}, then open the page in Chrome, Edge or another Chromium browser: it copies the live system to a FAT32 stick, from which PCs with UEFI start without this server.',
  },
  install: {
    title: 'Install a live system',
    another: 'Install another version',
    fetch: {
      title: 'Fetch a release',
      site: 'Release site',
      siteHint: 'Address of GitHub, Gitea or a plain web server with releases.',
      repository: 'Repository',
      repositoryHint: 'The owner and the name, as in the address of the repository.',
      tag: 'Release',
      tagHint: 'A tag such as {tag}, or {latest}.',
      button: 'Fetch release',
      hint: 'The files are verified before machines boot them.',
      setBy: 'Set by the environment variable {variable}.',
      errors: {
        site: 'Enter the address of the site, such as https://github.com.',
        repository: 'Enter the repository, such as owner/name.',
        noTag: 'That is no tag. A tag looks like v1.2.3, or is latest.',
      },
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
    note: 'This page only checks the daemon; start and stop it on its host. To check another host, change {setting}.',
    help: 'BIOS machines and most UEFI firmware load their first file by TFTP. These commands set it up on a Debian host; UEFI HTTP Boot needs none of it.',
    label: 'Commands that set up a TFTP daemon',
    findings: {
      unasked: { text: 'The TFTP daemon on {host} is being checked.' },
      serves: { text: 'The TFTP daemon on {host} serves {file}.' },
      fileMissing: {
        text: 'The TFTP daemon on {host} answers, but has no {file}.',
        hint: 'Put {file} (and undionly.kpxe for BIOS machines) into its folder.',
      },
      error: {
        text: 'The TFTP daemon on {host} answers with an error: {error}.',
        hint: 'Check that it may read {file} in its folder.',
      },
      refused: {
        text: 'Nothing listens on UDP port 69 of {host}.',
        hint: 'Start the TFTP daemon there, or change the TFTP server to check under Settings.',
      },
      silent: {
        text: '{host} gave no TFTP answer within {seconds} s.',
        hint: 'Check that it is running, and that no firewall blocks UDP port 69 or the replies to it.',
      },
      unreachable: {
        text: '{host} cannot be reached: {reason}.',
        hint: 'Correct the TFTP server to check under Settings.',
      },
    },
  },
} as const
