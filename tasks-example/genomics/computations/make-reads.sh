#!/bin/sh
#CE inputs genome sample seed variants depth
#CE outputs reads planted
#
# Simulates the sequencing of a sample. The genome is FASTA with one sequence.
# The seed is that of the random numbers; depth is how often each base is read.
#
# A sample has two copies of the genome, each with its variants: single bases
# that are another one in one copy (genotype 0/1) or in both (1/1). The reads are
# FASTQ, with 100 bases of both strands, named SAMPLE.NUMBER. One base of 500 is
# read wrong. What was planted is NDJSON with a row for each variant, and the
# columns chromosome, position, reference, alternate and genotype.
#
# The generator is that of Lehmer with modulus 2^31 - 1, so every awk gives the
# same reads.

set -eu
export LC_ALL=C

fail() {
    echo "make-reads: $*" >&2
    exit 1
}

# Refuses what is not a whole number. The messages call it $1.
whole() {
    case $2 in
        "" | *[!0-9]* | 0* | ????????*) fail "the $1 is not a whole number from 1 to 9999999: $2" ;;
    esac
}

case $text_sample in
    "" | *[!A-Za-z0-9_-]*) fail "the name of the sample is not made of letters, digits, _ and -: $text_sample" ;;
esac
whole seed "$text_seed"
whole "number of variants" "$text_variants"
whole depth "$text_depth"

awk '
    function fail(text) {
        print "make-reads: " text | "cat 1>&2"
        close("cat 1>&2")
        failed = 1
        exit 1
    }

    # Begins with a seed. Squares mix it, so that similar seeds give different numbers.
    function begin_with(seed,   i) {
        state = seed
        for (i = 1; i <= 9; i++)
            state = (state * state + i) % 67108859
        state++
    }

    # A whole number from 0 to count - 1.
    function random(count) {
        state = state * 48271 % 2147483647
        return int(state / 2147483647 * count)
    }

    # One of the three other bases.
    function another(base) {
        return substr("ACGT", (index("ACGT", base) + random(3)) % 4 + 1, 1)
    }

    # The text with another character at a place.
    function replace(text, place, character) {
        return substr(text, 1, place - 1) character substr(text, place + 1)
    }

    function reverse_complement(bases,   i, result) {
        for (i = length(bases); i > 0; i--)
            result = result substr("TGCA", index("ACGT", substr(bases, i, 1)), 1)
        return result
    }

    # Plants the variants: one in the middle half of each of equal
    # parts of the genome, and none where few reads reach.
    function plant(variants,   i, part, position, base, other, genotype, copy) {
        copies[0] = copies[1] = genome
        part = (bases - 2 * size) / variants
        for (i = 0; i < variants; i++) {
            position = size + int(part * (i + 0.25)) + random(int(part / 2)) + 1
            base = substr(genome, position, 1)
            other = another(base)
            genotype = random(2) ? "1/1" : "0/1"
            copy = random(2)
            copies[copy] = replace(copies[copy], position, other)
            if (genotype == "1/1")
                copies[1 - copy] = replace(copies[1 - copy], position, other)
            printf "{\"chromosome\":\"%s\",\"position\":%d,", chromosome, position >planted
            printf "\"reference\":\"%s\",\"alternate\":\"%s\",\"genotype\":\"%s\"}\n", base, other, genotype >planted
        }
    }

    # Reads both copies in turn. The reads begin at random places in equal
    # parts of the genome, so each place is read about as often.
    function sequence(sample, depth, file,   i, copy, reads, start, strand, read, place) {
        for (copy = 0; copy < 2; copy++) {
            strands[copy, 0] = copies[copy]
            strands[copy, 1] = reverse_complement(copies[copy])
        }
        reads = int(bases * depth / size)
        for (i = 0; i < reads; i++) {
            start = int((bases - size + 1) * (i + random(1000) / 1000) / reads)
            strand = random(2)
            if (strand)
                start = bases - size - start
            read = substr(strands[i % 2, strand], start + 1, size)
            for (place = random(1000) + 1; place <= size; place += random(1000) + 1)
                read = replace(read, place, another(substr(read, place, 1)))
            print "@" sample "." i + 1 "\n" read "\n+\n" quality >file
        }
        close(file)
    }

    BEGIN {
        size = 100
        planted = ENVIRON["out_planted"]
        # A probability of 1/500 is a quality of 27.
        quality = sprintf("%" size "s", "")
        gsub(/ /, "<", quality)
    }

    NR == 1 && /^>/ {
        chromosome = substr($1, 2)
        next
    }

    {
        if (chromosome !~ /^[A-Za-z0-9_.|:-]+$/ || !/^[ACGT]+$/)
            fail("line " NR " of the genome is not bases of one sequence")
        genome = genome $0
    }

    END {
        if (failed)
            exit 1
        bases = length(genome)
        variants = ENVIRON["text_variants"]
        if (bases < 200 * (variants + 1))
            fail("a genome of " bases " bases has no room for " variants " variants")
        begin_with(ENVIRON["text_seed"])
        plant(variants)
        sequence(ENVIRON["text_sample"], ENVIRON["text_depth"], ENVIRON["out_reads"])
    }
' "$in_genome"
