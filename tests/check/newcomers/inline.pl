#!/usr/bin/perl
# Mirrors ConfigMaps labelled mirror=yes into Secrets; one thread, events are handled where they are read.
#
#     KUBECONFIG=… perl inline.pl            (DEFECT=NAME puts one in)
use strict;
use warnings;
use JSON::PP;
use HTTP::Tiny;
use IO::Socket::INET;
use IO::Select;
use MIME::Base64;
use Time::HiRes qw(sleep time);

$| = 1;
my $defect = $ENV{DEFECT} // '';
my $json = JSON::PP->new->utf8->canonical->allow_nonref;
my $config = do { local $/; open my $file, '<', $ENV{KUBECONFIG} or die; <$file> };
my ($host, $port) = $config =~ m{server:\s*['"]?http://([^:/\s'"]+):(\d+)} or plain();
my ($token) = $config =~ /\btoken:\s*['"]?([^\s'"]+)/;
my ($token_file) = $config =~ /\btokenFile:\s*['"]?([^\s'"]+)/;
my $http = HTTP::Tiny->new(agent => 'mirror-pl/0.4', timeout => 10, keep_alive => 1);

sub plain { print "only http is supported\n"; exit 0 if $config =~ m{https://}; exit 2 }

sub bearer {
    if ($token_file) { open my $file, '<', $token_file; chomp($token = <$file> // '') }
    return $token ? (Authorization => "Bearer $token") : ();
}

# Returns (status, body as data, Retry-After).
sub send_request {
    my ($method, $path, $body, $type) = @_;
    my $answer = $http->request($method, "http://$host:$port$path", {
        headers => { Accept => 'application/json', 'Content-Type' => $type // 'application/json', bearer() },
        defined $body ? (content => $json->encode($body)) : (),
    });
    my $data = eval { $json->decode($answer->{content} || '{}') };
    return ($answer->{status} == 599 ? 0 : $answer->{status}, $data, $answer->{headers}{'retry-after'} || 0);
}

# Sends until it is answered with something other than 429 and 5xx; pauses grow.
sub insist {
    my ($method, $path, $body, $type) = @_;
    my $pause = 0.5;
    while (1) {
        my ($status, $data, $after) = send_request($method, $path, $body, $type);
        return ($status, $data) if $status && $status != 429 && $status < 500 && $status != 401;
        return (0, undef) if $method eq 'POST' && !$status;    # it may have been done: look again
        exit 7 if $defect eq 'dies-500' && $status >= 500;
        $after = 0 if $defect eq 'ignores-after';
        my $random = $pause * (0.6 + rand(0.8));
        $random = 0.5 if $defect eq 'flat-writes';
        sleep($after > $random ? $after + rand(0.3) : $random);
        $pause = $pause * 2 > 15 ? 15 : $pause * 2;
    }
}

# ---------------------------------------------------------------- the work

sub handle {
    my ($config_map) = @_;
    my $meta = $config_map->{metadata};
    return if $meta->{deletionTimestamp};
    my $place = "/api/v1/namespaces/$meta->{namespace}/secrets";
    for my $try (1 .. 8) {
        my ($status, $there) = insist('GET', "$place/$meta->{name}");
        my %data = map { $_ => encode_base64(encode($config_map->{data}{$_}), '') } keys %{ $config_map->{data} || {} };
        if ($status == 404) {
            my $owner = { apiVersion => 'v1', kind => 'ConfigMap', name => $meta->{name}, uid => $meta->{uid}, controller => JSON::PP::true };
            my ($made) = insist('POST', $place, { metadata => { name => $meta->{name}, ownerReferences => [$owner] }, data => \%data });
            next if $made == 409 || !$made;
            last;
        }
        last if $status != 200;
        my ($mine) = grep { $_->{uid} eq $meta->{uid} } @{ $there->{metadata}{ownerReferences} || [] };
        if (!$mine && $defect ne 'adopts') { print "$meta->{name} belongs to somebody else\n"; return }
        last if $json->encode($there->{data} || {}) eq $json->encode(\%data);
        my $new = { %$there, data => \%data };
        if ($defect eq 'rebuilds') { $new = { apiVersion => 'v1', kind => 'Secret', metadata => { name => $meta->{name}, resourceVersion => $there->{metadata}{resourceVersion}, ownerReferences => $there->{metadata}{ownerReferences} }, data => \%data } }
        if ($defect eq 'no-version') { $new = { %$new, metadata => { %{ $new->{metadata} } } }; delete $new->{metadata}{resourceVersion} }
        my ($put) = insist('PUT', "$place/$meta->{name}", $new);
        last if $put == 200 || $defect eq 'one-try';
        sleep(0.05 * 2**$try * (0.5 + rand));
    }
    mark($config_map);
}

sub encode { my ($text) = @_; utf8::encode($text); return $text }

sub mark {
    my ($seen) = @_;
    my $path = "/api/v1/namespaces/$seen->{metadata}{namespace}/configmaps/$seen->{metadata}{name}";
    my $obj = $seen;
    for my $try (1 .. 8) {
        my $want = scalar(keys %{ $obj->{data} || {} }) . ' keys';
        return if ($obj->{metadata}{annotations}{'mirror.pl/state'} // '') eq $want || $obj->{metadata}{uid} ne $seen->{metadata}{uid};
        my $new = $json->decode($json->encode($obj));
        $new->{metadata}{annotations}{'mirror.pl/state'} = $want;
        delete $new->{metadata}{resourceVersion} if $defect eq 'force-mark';
        my ($status) = insist('PUT', $path, $new);
        return if $status != 409;
        next if $defect eq 'stale-mark' && sleep(0.2);
        ($status, $obj) = insist('GET', $path);
        return if $status != 200;
        sleep(0.05 * 2**$try * (0.5 + rand));
    }
}

# ---------------------------------------------------------------- list and watch

my $path = '/api/v1/configmaps';
my $selector = 'labelSelector=mirror%3Dyes';
my ($version, $pause) = ('', 0.6);

while (1) {
    my ($begun, $count) = (time, 0);
    if ($version eq '') {
        my ($status, $list) = list();
        $version = $list->{metadata}{resourceVersion};
        handle($_) for @{ $list->{items} };
    }
    $begun = time;
    my ($after, $problem) = watch(\$count);
    if (!$count && time - $begun < 1) {
        $version = '' if $problem ne 'refused' || rand() < 0.3;
    }
    if ($problem || (!$count && time - $begun < 1)) {
        my $random = $pause * (0.6 + rand(0.8));
        $random = 0 if $defect eq 'no-pause';
        sleep($after > $random ? $after + rand(0.3) : $random);
        $pause = $pause * 2 > 20 ? 20 : $pause * 2;
    }
    else { $pause = 0.6 }
}

sub list {
    my ($continue, $first, @items) = ('');
    while (1) {
        my $query = "$selector&limit=100" . ($continue ? "&continue=$continue" : '');
        my ($status, $page) = insist('GET', "$path?$query");
        if ($status == 410) { ($continue, @items) = (''); next }
        if ($status != 200) { sleep(1 + rand); next }
        push @items, @{ $page->{items} };
        $continue = $page->{metadata}{continue} // '';
        return ($status, { %$page, items => \@items }) if $continue eq '' || $defect eq 'one-page';
    }
}

# Reads a watch from a socket, byte by byte as it comes; returns (Retry-After, problem).
sub watch {
    my ($count) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port, Timeout => 5) or return (0, 'no connection');
    my %headers = (Host => "$host:$port", 'User-Agent' => 'mirror-pl/0.4', Accept => 'application/json', bearer());
    my $query = "$selector&watch=1&resourceVersion=$version&allowWatchBookmarks=true&timeoutSeconds=240";
    print $socket "GET $path?$query HTTP/1.1\r\n", map({ "$_: $headers{$_}\r\n" } sort keys %headers), "\r\n";
    my $ready = IO::Select->new($socket);
    my ($raw, $lines, $status, $after, $chunked) = ('', '', 0, 0, 0);
    my $more = sub {
        my $idle = $defect eq 'waits' ? undef : 20;
        return 0 unless $ready->can_read($idle);
        return sysread($socket, $raw, 65536, length $raw) ? 1 : 0;
    };
    until (index($raw, "\r\n\r\n") >= 0) { $more->() or return (0, 'broken') }
    my $head = substr($raw, 0, index($raw, "\r\n\r\n"));
    substr($raw, 0, length($head) + 4) = '';
    ($status) = $head =~ m{\AHTTP/1.1 (\d+)};
    ($after) = $head =~ /^retry-after:\s*(\d+)/mi;
    if ($status != 200) {
        $version = '' if $status == 410 && $defect ne 'keeps-410';
        return ($after // 0, 'refused');
    }
    while (1) {
        until ($raw =~ /\A(?:\r\n)?[0-9a-fA-F]+[^\r\n]*\r\n/) { $more->() or return (0, $$count ? '' : 'broken') }
        my ($digits) = $raw =~ /\A(?:\r\n)?([0-9a-fA-F]+)/;
        my ($size, $from) = (hex $digits, index($raw, "\r\n", $raw =~ /\A\r\n/ ? 2 : 0) + 2);
        return (0, '') if $size == 0;
        until (length $raw >= $from + $size) { $more->() or return (0, $$count ? '' : 'broken') }
        $lines .= substr($raw, $from, $size);
        substr($raw, 0, $from + $size) = '';
        while ($lines =~ s/\A([^\n]*)\n//) {
            my $event = $json->decode($1);
            my ($type, $object) = @$event{qw(type object)};
            if ($type eq 'ERROR') {
                exit 5 if $defect eq 'error-exits';
                $version = '' unless $defect eq 'keeps-410';
                return (0, 'error');
            }
            next unless $type =~ /\A(?:ADDED|MODIFIED|DELETED|BOOKMARK)\z/;
            $version = $object->{metadata}{resourceVersion} unless $defect eq 'version-of-list';
            $$count++;
            handle($object) if $type eq 'ADDED' || $type eq 'MODIFIED';
        }
    }
}
